// How long after its commit a job's handler starts: one producer and one worker, each a process of its own, by the
// machine's monotonic clock.

import type { Child } from '../kit/child.ts'
import { percentile } from '../kit/rounds.ts'
import type { Contest } from './contest.ts'
import type { Entry } from './roster.ts'

const STALL_MS = 60_000
const RATE_BATCH = 100
/** So many may be under way while the steady rate is looked for. */
const RATE_AHEAD = 2000

/** How many jobs for which part. */
export interface LatencyOptions {
  /** Jobs one after the other, the worker idle between them. */
  readonly idle: number
  /** Transactions that stay open for a second before they commit. */
  readonly held: number
  /** How long work goes on at half of the steady rate; as long a look for that rate goes before. Unit: ms. */
  readonly busyMs: number
}

/** Percentiles in ms: `idleP50Ms` …; those of a part that a contender can't do are absent. */
export async function latencies(
  contest: Contest,
  entry: Entry,
  { idle, held, busyMs }: LatencyOptions,
): Promise<Record<string, number>> {
  const ready = await contest.ready(entry)
  const producer = await ready.child()
  const worker = await ready.child()
  const line = new Line(producer, worker)
  try {
    await producer.ask('open', ready.place)
    await worker.ask('open', ready.place)
    await worker.ask('starts')
    await worker.ask('work')
    // Plans and code get warm, LISTEN is proven.
    await line.oneByOne(20, 0)
    const count = await ready.count()
    const before = await cpuOf(producer, worker)
    const warm = line.jobs
    const figures = {
      ...percentiles('idle', await line.oneByOne(idle, 0)),
      ...(entry.name.startsWith('bullmq') ? {} : percentiles('held', await line.oneByOne(held, 1000))),
    }
    const rate = await line.rate(busyMs)
    const busy = await line.atRate(rate / 2, busyMs)
    await count.mark()
    const jobs = line.jobs - warm
    const nodeCpuUs = ((await cpuOf(producer, worker)) - before) / jobs
    for (const child of [producer, worker]) {
      await child.ask('close')
      await child.end()
    }
    const counted = { nodeCpuUs, ...(await count.perJob(jobs)) }
    return { ...figures, steadyPerSecond: rate, ...percentiles('busy', busy), ...counted }
  } finally {
    await producer.end()
    await worker.end()
  }
}

async function cpuOf(...children: readonly Child[]): Promise<number> {
  const answers = await Promise.all(children.map((child) => child.ask('cpu')))
  return answers.reduce((sum, { totalCpuUs }) => sum + totalCpuUs, 0)
}

function percentiles(part: string, ms: readonly number[]): Record<string, number> {
  return {
    [`${part}P50Ms`]: percentile(ms, 0.5),
    [`${part}P95Ms`]: percentile(ms, 0.95),
    [`${part}P99Ms`]: percentile(ms, 0.99),
  }
}

/** Jobs from a producer to a worker: when each was committed, when each started. */
class Line {
  readonly #producer: Child
  readonly #worker: Child
  #next = 0
  #handled = 0

  constructor(producer: Child, worker: Child) {
    this.#producer = producer
    this.#worker = worker
    worker.onTold((told) => {
      this.#handled = (told as { handled: number }).handled
    })
  }

  /** Jobs that were enqueued so far. */
  get jobs(): number {
    return this.#next
  }

  /** One job, and the next only when that one has started, and a little later: never twice at the same point. */
  async oneByOne(jobs: number, holdMs: number): Promise<number[]> {
    const commits = new Map<number, number>()
    for (let n = 0; n < jobs; n++) {
      await this.#commit(1, holdMs, commits)
      await this.#settled()
      await pause(20 + ((n * 7) % 30))
    }
    return this.#latencies(commits)
  }

  /** Jobs a second that go through while neither side waits for the other. */
  async rate(ms: number): Promise<number> {
    const began = performance.now()
    const from = this.#handled
    while (performance.now() - began < ms) {
      if (this.#next - this.#handled < RATE_AHEAD) await this.#commit(RATE_BATCH, 0, new Map())
      else await pause(1)
    }
    const rate = ((this.#handled - from) / (performance.now() - began)) * 1000
    await this.#settled()
    await this.#worker.ask('starts')
    return rate
  }

  /** Commits every 20 ms, each of as many jobs as that rate makes. */
  async atRate(perSecond: number, ms: number): Promise<number[]> {
    const commits = new Map<number, number>()
    const began = performance.now()
    let sent = 0
    for (let now = 0; now < ms; now = performance.now() - began) {
      const due = Math.floor((now / 1000) * perSecond) - sent
      if (due > 0) await this.#commit(due, 0, commits)
      sent += Math.max(0, due)
      await pause(20)
    }
    await this.#settled()
    return this.#latencies(commits)
  }

  async #commit(jobs: number, holdMs: number, commits: Map<number, number>): Promise<void> {
    const ns = Array.from({ length: jobs }, () => this.#next++)
    const { value } = await this.#producer.ask<number>('commit', { ns, holdMs })
    for (const n of ns) commits.set(n, value)
  }

  async #settled(): Promise<void> {
    const deadline = performance.now() + STALL_MS
    while (this.#handled < this.#next) {
      if (performance.now() > deadline)
        throw new Error(`${this.#next - this.#handled} jobs did not start in a minute`)
      await pause(2)
    }
  }

  async #latencies(commits: ReadonlyMap<number, number>): Promise<number[]> {
    const { value } = await this.#worker.ask<[number, number][]>('starts')
    return value.flatMap(([n, at]) => {
      const committed = commits.get(n)
      return committed === undefined ? [] : [(at - committed) / 1e6]
    })
  }
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
