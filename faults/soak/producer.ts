// The program of the client of a soak: it enqueues in every way at a bounded rate, calls jobs off, pauses a queue, and
// counts what it was answered.

import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { AnyRequest } from '../../src/ground/job.ts'
import { createRowlock, type Enqueued } from '../../src/index.ts'
import { diceOf } from '../random.ts'
import { gauge, watch } from './gauges.ts'
import { jobs, type Kind, SHARES, SIDE, type Task } from './jobs.ts'
import { serve } from './serve.ts'

watch()
const { url, seed, rate } = JSON.parse(process.env.SOAK_PROGRAM!) as {
  url: string
  seed: number
  rate: number
}
const { say, answer } = serve()
const dice = diceOf(seed)
const rowlock = createRowlock({ connectionString: url })
const pool = new pg.Pool({ connectionString: url, max: 2, application_name: 'rowlock producer' })
pool.on('error', () => {})

/** What was acknowledged, and what not. */
const counts = { created: 0, deduped: 0, rolledBack: 0, calledOff: 0, pauses: 0 }
/** To be called off, from then on. Unit: ms of the monotonic clock. */
let unwanted: { readonly id: string; readonly at: number }[] = []

function request(): AnyRequest {
  const [kind] = dice.weigh(SHARES, ([, share]) => share)
  const luck = dice.roll()
  const task: Task =
    kind === 'large' ? { luck, text: 'large '.repeat(1_000 + Math.floor(luck * 9_000)) } : { luck }
  return jobs[kind].with(task, {
    ...(kind === 'quick' && dice.chance(0.3) && { dedupeKey: `key-${dice.whole(20)}` }),
    ...(dice.chance(0.1) && { delay: Math.round(dice.between(1, 500)) }),
    ...(dice.chance(0.1) && { priority: dice.whole(21) - 10 }),
    ...(dice.chance(0.2) && { metadata: { customer: dice.whole(1_000) } }),
  })
}

function acknowledged({ definition }: AnyRequest, { id, created }: Enqueued): void {
  if (created) counts.created++
  else counts.deduped++
  if ((definition.kind as Kind) !== 'unwanted') return
  unwanted.push({ id, at: performance.now() + dice.between(0, 800) })
}

async function single(): Promise<number> {
  const one = request()
  acknowledged(one, await rowlock.enqueue(one.definition, one.input, one.options))
  return 1
}

async function bulk(): Promise<number> {
  const some = Array.from({ length: 2 + dice.whole(10) }, request)
  const answers = await rowlock.enqueueMany(some)
  for (const [n, one] of some.entries()) acknowledged(one, answers[n]!)
  return some.length
}

async function inTransaction(): Promise<number> {
  const one = request()
  const isRolledBack = dice.chance(0.3)
  const client = await pool.connect()
  try {
    await client.query('begin')
    const said = await rowlock.in(client).enqueue(one.definition, one.input, one.options)
    await client.query(isRolledBack ? 'rollback' : 'commit')
    if (isRolledBack) counts.rolledBack++
    else acknowledged(one, said)
  } finally {
    client.release()
  }
  return 1
}

async function callOff(all: boolean): Promise<void> {
  const now = performance.now()
  const due = unwanted.filter(({ at }) => all || at <= now)
  unwanted = unwanted.filter((one) => !due.includes(one))
  for (const { id } of due) {
    await rowlock.cancel(id, { actor: 'soak' })
    counts.calledOff++
  }
}

/** So long, then everything that is to be called off is, and nothing is paused. */
async function load({ forMs }: { readonly forMs: number }): Promise<typeof counts> {
  const began = performance.now()
  const pauseAt = dice.between(0.1, 0.5)
  let isPaused = false
  let asked = 0
  for (;;) {
    const passed = performance.now() - began
    if (passed >= forMs) break
    const shouldPause = passed >= pauseAt * forMs && passed < (pauseAt + 0.2) * forMs
    if (shouldPause !== isPaused) {
      isPaused = shouldPause
      if (isPaused) counts.pauses++
      await (isPaused ? rowlock.pause(SIDE) : rowlock.resume(SIDE))
    }
    const way = dice.roll()
    asked += await (way < 0.6 ? single : way < 0.75 ? bulk : inTransaction)()
    await callOff(false)
    await sleep(Math.min(forMs, (asked / rate) * 1_000) - (performance.now() - began))
  }
  if (isPaused) await rowlock.resume(SIDE)
  await callOff(true)
  return counts
}

answer({
  load,
  gauge,
  stop: async () => {
    await rowlock.close()
    await pool.end()
  },
})
say({ to: 0 })
