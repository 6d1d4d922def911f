// One measurement of what it costs a contender to put jobs in.

import type { Contest } from './contest.ts'
import { type Entry, jobsOf } from './roster.ts'

const CLIENTS = 16

/** In bulk: calls of 1,000 one after the other. Ones: a job a call and a transaction, from 16 clients at once. */
export type Way = 'bulk' | 'ones'

/** Figures per job: rate, Node CPU, everything counted. What is not measured comes first: plans and code get warm. */
export async function enqueued(
  contest: Contest,
  entry: Entry,
  way: Way,
  most: number,
): Promise<Record<string, number>> {
  const jobs = jobsOf(entry, most)
  const ready = await contest.ready(entry)
  const child = await ready.child()
  const ask = (amount: number) =>
    way === 'bulk'
      ? child.ask('enqueue', { jobs: amount, batch: 1000 })
      : child.ask('enqueueOnes', { jobs: amount, clients: CLIENTS })
  try {
    await child.ask('open', ready.place)
    await ask(way === 'bulk' ? Math.min(jobs, 20_000) : Math.min(jobs, 2_000))
    const count = await ready.count()
    const { ms, nodeCpuUs } = await ask(jobs)
    await count.mark()
    await child.ask('close')
    await child.end()
    return { perSecond: (jobs / ms) * 1000, nodeCpuUs: nodeCpuUs / jobs, ...(await count.perJob(jobs)) }
  } finally {
    await child.end()
  }
}
