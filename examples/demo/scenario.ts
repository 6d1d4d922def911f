// What happens on the way: orders come in, some inputs are poison, jobs are cancelled, the ERP goes down and turns
// slow, a worker is killed while it runs jobs.

import { setTimeout as sleep } from 'node:timers/promises'
import { CURSED_EVENT, HELD_EVENT, UNKNOWN_EVENT } from './erp-receiver.ts'
import { resizePicture, sendEmail, syncRecord } from './jobs.ts'
import { breakPicture } from './pictures.ts'
import { NO_SUCH_MAILBOX } from './smtp-sink.ts'
import type { Stage } from './stage.ts'
import { busiestWorker } from './watch.ts'

export interface ScenarioOptions {
  readonly stage: Stage
  readonly orders: number
  readonly isOnce: boolean
  /** Given when no new jobs shall come. */
  readonly signal: AbortSignal
  readonly onEvent: (text: string) => void
}

const ORDERS_WITHIN_MS = 14_000
const TRICKLE_MS = 500
const MISFORTUNE_EVERY_MS = 30_000
const DOWN_MS = 3_000
const SLOW_MS = 5_000
const SLOW_AT_MOST_MS = 20_000

/** Resolves when everything that was to happen has happened, or as soon as the signal is given. */
export async function play(options: ScenarioOptions): Promise<void> {
  const { stage, signal, isOnce, onEvent } = options
  const until = (ms: number) => sleep(ms, undefined, { signal }).catch(() => {})
  await poison(stage)
  onEvent('a few poisoned inputs are in: they must end as failed or as dead letters')
  const acts = [takeOrders(options, until), cancelSome(options, until)]
  await until(3_000)
  if (!signal.aborted) await goDown(options, until)
  await until(1_000)
  if (!signal.aborted) await killOne(options, until)
  while (!isOnce && !signal.aborted) {
    await until(MISFORTUNE_EVERY_MS)
    if (!signal.aborted) await goDown(options, until)
    await until(MISFORTUNE_EVERY_MS)
    if (!signal.aborted) await killOne(options, until)
  }
  await Promise.all(acts)
}

type Until = (ms: number) => Promise<unknown>

async function takeOrders(
  { stage, orders, isOnce, signal, onEvent }: ScenarioOptions,
  until: Until,
): Promise<void> {
  const { shop } = stage
  const startedAt = performance.now()
  while (!signal.aborted && shop.placed < orders) {
    const due = Math.ceil(((performance.now() - startedAt) / ORDERS_WITHIN_MS) * orders)
    while (!signal.aborted && shop.placed < Math.min(due, orders)) await shop.placeNext()
    await until(50)
  }
  if (!signal.aborted)
    onEvent(`all ${orders} orders are in, ${shop.takenBack.length} jobs were rolled back with theirs`)
  while (!isOnce && !signal.aborted) {
    await shop.placeNext()
    await until(TRICKLE_MS)
  }
}

/** Inputs that cannot succeed: the mailbox, the template, the picture, the ERP, the schema. */
async function poison({ shop, pool, state }: Stage): Promise<void> {
  const record = (reference: string, event: string) => ({ reference, event, payload: {} })
  await shop.enqueue(sendEmail.with({ reference: 'poison-mailbox', to: NO_SUCH_MAILBOX }))
  await shop.enqueue(
    sendEmail.with(
      { reference: 'poison-template', to: 'someone@customer.example', template: 'voucher' },
      { retry: { maxAttempts: 3 } },
    ),
  )
  const picture = breakPicture(state.run)
  await shop.enqueue(resizePicture.with({ reference: 'poison-picture', picture, width: 320 }))
  await shop.enqueue(syncRecord.with(record('poison-event', UNKNOWN_EVENT)))
  await shop.enqueue(syncRecord.with(record('poison-cursed', CURSED_EVENT), { retry: { maxAttempts: 4 } }))
  // From SQL, past the schema that TypeScript would have shown it to.
  const { rows } = await pool.query<{ id: string }>(
    `select id::text
       from rowlock.enqueue('send-email', '{"reference": "poison-schema", "to": 42}', '{"queue": "email"}')`,
  )
  shop.acknowledge({ id: rows[0]!.id, kind: 'send-email', reference: 'poison-schema' })
}

/** A scheduled job, a running one, and one that comes too late by itself. */
async function cancelSome({ stage, signal, onEvent }: ScenarioOptions, until: Until): Promise<void> {
  const { shop, rowlock } = stage
  const mail = (reference: string) => ({ reference, to: 'someone@customer.example' })
  const operator = { actor: 'demo', reason: 'the customer changed their mind' }
  await shop.enqueue(sendEmail.with(mail('too-late'), { delay: '4s', expiresIn: '2s' }))
  const scheduled = await shop.enqueue(sendEmail.with(mail('unwanted'), { delay: '1h' }))
  const held = await shop.enqueue(syncRecord.with({ reference: 'held', event: HELD_EVENT, payload: {} }))
  await rowlock.cancel(scheduled.id, operator)
  while (!signal.aborted && (await rowlock.job(held.id))?.state !== 'running') await until(100)
  await until(500)
  await rowlock.cancel(held.id, operator)
  onEvent('a scheduled job and a running one were cancelled; one more expires before it is due')
}

async function goDown({ stage, onEvent }: ScenarioOptions, until: Until): Promise<void> {
  await stage.erp.stop()
  onEvent(`the ERP goes down for ${DOWN_MS / 1000} s`)
  await until(DOWN_MS)
  await stage.erp.start()
  onEvent('the ERP is back')
}

/** The ERP turns slow, so that a worker certainly runs jobs; then that worker is killed, and another is hired. */
async function killOne({ stage, signal, onEvent }: ScenarioOptions, until: Until): Promise<void> {
  const { erp, crew, pool } = stage
  erp.setSlow(true)
  const slowSince = performance.now()
  const slowMs = () => performance.now() - slowSince
  while (!signal.aborted && slowMs() < SLOW_AT_MOST_MS) {
    const busiest = await busiestWorker(pool)
    const wanted = slowMs() < SLOW_MS ? 2 : 1
    const killed = busiest && busiest.started >= wanted ? await crew.kill(busiest.workerId) : undefined
    if (killed !== undefined) {
      onEvent(
        `${killed.name} (pid ${killed.pid}) was killed while it ran at least ${count(busiest!.started, 'job')}`,
      )
      await until(500)
      erp.setSlow(false)
      const hired = await crew.hire()
      onEvent(`${hired.name} (pid ${hired.pid}) takes its place`)
      break
    }
    await until(100)
  }
  erp.setSlow(false)
}

const count = (n: number, noun: string) => `${n} ${noun}${n === 1 ? '' : 's'}`
