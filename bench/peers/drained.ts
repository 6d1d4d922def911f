// One drain of one contender: jobs are put in, its processes begin to work, and it is over when the last completion is
// committed.

import type { Child } from '../kit/child.ts'
import { clientOf } from '../kit/counted.ts'
import type { Contest, Count, Ready } from './contest.ts'
import { type Entry, jobsOf } from './roster.ts'

const LOOK_MS = 2
const STALL_MS = 60_000

/** What to drain. */
export interface DrainOptions {
  readonly jobs: number
  readonly processes: number
  /** Count the enqueue too: the whole life of a job. */
  readonly life?: boolean
}

/** Figures of one drain, per job: rate, Node CPU, and everything counted; `enqueue…` besides for a whole life. */
export async function drained(
  contest: Contest,
  entry: Entry,
  options: DrainOptions,
): Promise<Record<string, number>> {
  const jobs = jobsOf(entry, options.jobs)
  const ready = await contest.ready(entry)
  const children: Child[] = []
  const child = async (): Promise<Child> => {
    const one = await ready.child()
    children.push(one)
    return one
  }
  try {
    const life = options.life === true ? await ready.count() : undefined
    // Its workers load while it is filled: that is not measured.
    const loading = Promise.all(Array.from({ length: options.processes }, () => child()))
    loading.catch(() => {})
    const producer = await child()
    await producer.ask('open', ready.place)
    const filled = await producer.ask('enqueue', { jobs, batch: 1000 })
    await producer.ask('close')
    await producer.end()
    const workers = await loading
    if (life === undefined && entry.on === 'postgres') await settle(ready)
    for (const worker of workers) await worker.ask('open', ready.place)
    const count = life ?? (await ready.count())
    const figures = await worked(workers, jobs, count)
    for (const worker of workers) await worker.ask('close')
    for (const worker of workers) await worker.end()
    const counted = await count.perJob(jobs)
    if (life === undefined) return { ...figures, ...counted }
    const nodeCpuUs = filled.nodeCpuUs / jobs + figures.nodeCpuUs
    return { ...figures, ...counted, enqueuePerSecond: (jobs / filled.ms) * 1000, nodeCpuUs }
  } finally {
    for (const each of children) await each.end()
  }
}

/** From the first take to the last commit. */
async function worked(
  workers: readonly Child[],
  jobs: number,
  count: Count,
): Promise<{ perSecond: number; nodeCpuUs: number }> {
  const all = untilHandled(workers, jobs)
  const before = await cpuOf(workers)
  const began = performance.now()
  await Promise.all(workers.map((worker) => worker.ask('work')))
  await all
  const deadline = performance.now() + STALL_MS
  while ((await workers[0]!.ask<number>('left')).value > 0) {
    if (performance.now() > deadline) throw new Error('jobs were handled and are not finished after a minute')
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
  }
  const seconds = (performance.now() - began) / 1000
  await count.mark()
  return { perSecond: jobs / seconds, nodeCpuUs: ((await cpuOf(workers)) - before) / jobs }
}

/** Errors: when nothing moves for a minute. */
function untilHandled(workers: readonly Child[], jobs: number): Promise<void> {
  const handled = workers.map(() => 0)
  const sum = (): number => handled.reduce((all, each) => all + each, 0)
  return new Promise((resolve, reject) => {
    const stalled = () =>
      reject(new Error(`${sum()} of ${jobs} jobs were handled, and then none for a minute`))
    let timer = setTimeout(stalled, STALL_MS)
    workers.forEach((worker, n) => {
      worker.onTold((told) => {
        handled[n] = (told as { handled: number }).handled
        clearTimeout(timer)
        if (sum() >= jobs) resolve()
        else timer = setTimeout(stalled, STALL_MS)
      })
    })
  })
}

async function cpuOf(workers: readonly Child[]): Promise<number> {
  const answers = await Promise.all(workers.map((worker) => worker.ask('cpu')))
  return answers.reduce((sum, { totalCpuUs }) => sum + totalCpuUs, 0)
}

/** Everybody begins with fresh statistics, and nobody's drain pays for an autovacuum of the enqueue. */
async function settle({ place }: Ready): Promise<void> {
  const client = await clientOf(place.url)
  const { rows } = await client.query(
    `select c.oid::regclass::text as name
       from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where c.relkind = 'r' and n.nspname !~ '^pg_|^information_schema$' and pg_relation_size(c.oid) > 0`,
  )
  if (rows.length > 0) await client.query(`vacuum (analyze) ${rows.map(({ name }) => name).join(', ')}`)
  await client.end()
}
