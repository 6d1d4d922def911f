// Sends victims to their points, several before one drain: a fork costs more than all it does.

import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { LIMITS } from '../../src/ground/limits.ts'
import { createRowlock } from '../../src/index.ts'
import { check } from '../checker.ts'
import { readRest, settle, untilDrained } from '../drain.ts'
import type { Call, Violation } from '../history.ts'
import { jobs, TRANSACTIONAL } from '../jobs.ts'
import { openLedger } from '../ledger.ts'
import { readWritten, type Stage } from '../stage.ts'
import { handlersOf, undone } from './handlers.ts'
import type { Errand, Order, Point } from './points.ts'
import type { MortalServer } from './server.ts'

/** What became of one victim. */
export interface Ended {
  readonly pid: number
  /** It, or the server; a point that it never came to lets both live. */
  readonly wasKilled: boolean
  /** Something waited for a lock meanwhile: it was surely sent, and surely not done. */
  readonly waited: boolean
  /** How often each statement and moment came up, of one that lived. */
  readonly counts: readonly (readonly [string, number])[]
}

/** One database, the victims that were sent to it, and what they said. */
export class Trial {
  readonly #stage: Stage
  readonly #url: string
  readonly #calls = new Map<string, Call>()
  readonly #deaths: { pid: number; at: number }[] = []
  readonly #mishaps: string[] = []
  readonly #queues: string[] = []

  readonly #server: MortalServer | undefined
  #reviving: Promise<void> = Promise.resolve()

  /** `server`: then it is this that dies at each point, and not the victim. */
  constructor(stage: Stage, url: string, server?: MortalServer) {
    this.#stage = stage
    this.#url = url
    this.#server = server
  }

  /** Prepare its queue, send it, and wait for its end. */
  async send(errand: Errand, point?: Point): Promise<Ended> {
    const queue = `${errand}${this.#queues.length}`
    this.#queues.push(queue, ...(errand === 'produce' ? [`${queue}-many`] : []))
    if (errand !== 'produce') await this.#fill(queue)
    if (errand === 'reap') await this.#lose(queue)
    const ended = await this.#run({
      url: this.#url,
      errand,
      queue,
      ...(this.#server !== undefined && { server: this.#server.pid }),
      ...(point !== undefined && { point }),
    })
    await this.#reviving
    return ended
  }

  /** One of each sort. */
  async #fill(queue: string): Promise<void> {
    const rowlock = createRowlock({ connectionString: this.#url })
    const { quick, flaky, hopeless, later, book, slow } = jobs
    const kinds = [quick, flaky, hopeless, later, book, undone, slow]
    const requests = kinds.map((each) =>
      each.with({ ref: `${queue} ${each.kind}`, luck: 0 }, { queue, dedupeKey: each.kind }),
    )
    const answers = await rowlock.enqueueMany(requests)
    for (const [n, { id, created }] of answers.entries()) {
      const ref = `${queue} ${kinds[n]!.kind}`
      this.#calls.set(ref, { ref, answer: 'ok', id, created, inTransaction: false })
    }
    await rowlock.close()
  }

  /**
   * A worker that is no more held them: some had started. A day of history is long over, too.
   * Its lease is short: after a crash of the server the reaper waits for one more.
   */
  async #lose(queue: string): Promise<void> {
    const wants = JSON.stringify([{ queue, limit: 10, kinds: ['quick', 'flaky', 'later'] }])
    const [row] = await this.#stage.sql<{ id: string }>('select gen_random_uuid()::text as id')
    await this.#stage.sql(`select rowlock.register($1, '10 s', '{"name": "lost"}')`, [row!.id])
    const [claim] = await this.#stage.sql<{ reply: { claim_id: string; jobs: [string][] } }>(
      'select rowlock.claim($1, $2) as reply',
      [row!.id, wants],
    )
    const {
      claim_id,
      jobs: [first],
    } = claim!.reply
    await this.#stage.sql('select rowlock.start($1)', [JSON.stringify([{ id: first![0], claim_id }])])
    await this.#stage.sql('update rowlock.worker set expires_at = clock_timestamp() where id = $1', [row!.id])
    const long = `timestamptz '2001-01-01 12:00Z' + $1 * interval '1 day'`
    await this.#stage.sql(`select rowlock.make_days(${long}, 1)`, [this.#queues.length])
  }

  #run(order: Order): Promise<Ended> {
    const child = fork(fileURLToPath(new URL('./victim.ts', import.meta.url)), [], {
      execArgv: ['--import', 'tsx', '--unhandled-rejections=strict'],
      env: { ...process.env, FAULTS_VICTIM: JSON.stringify(order) },
      stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
    })
    let counts: [string, number][] = []
    let stderr = ''
    let wasStruck = false
    let waited = false
    child.stderr!.on('data', (data) => {
      stderr += data
    })
    child.on('message', (message) => {
      const said = message as {
        asks?: string[]
        inTransaction?: boolean
        answered?: { ref: string; id: string; created: boolean }[]
        counts?: [string, number][]
        mishap?: string
        failed?: string[]
        crash?: true
        waits?: true
      }
      if (said.crash) {
        wasStruck = true
        this.#reviving = this.#server!.revive()
      }
      waited ||= said.waits === true
      for (const ref of said.failed ?? [])
        this.#calls.set(ref, { ...this.#calls.get(ref)!, answer: 'failed' })
      for (const ref of said.asks ?? []) {
        this.#calls.set(ref, { ref, answer: 'unknown', inTransaction: said.inTransaction === true })
      }
      for (const { ref, id, created } of said.answered ?? []) {
        this.#calls.set(ref, { ...this.#calls.get(ref)!, answer: 'ok', id, created })
      }
      if (said.counts !== undefined) counts = said.counts
      if (said.mishap !== undefined) this.#mishaps.push(said.mishap)
    })
    return new Promise((resolve) => {
      child.on('close', (code, signal) => {
        const wasKilled = signal === 'SIGKILL'
        this.#deaths.push({ pid: child.pid!, at: Date.now() })
        if (!wasKilled && code !== 0)
          this.#mishaps.push(`a victim ended with ${code}: ${stderr.slice(0, 1_000)}`)
        resolve({ pid: child.pid!, wasKilled: wasKilled || wasStruck, waited, counts })
      })
    })
  }

  /** Healthy workers for all that is left; then the books must balance. */
  async judge(): Promise<readonly Violation[]> {
    // Victims are dead: nobody waits for their leases.
    await this.#stage.sql('update rowlock.worker set expires_at = clock_timestamp()')
    const rowlock = createRowlock({ connectionString: this.#url })
    const ledger = openLedger(this.#url)
    const most = LIMITS.queuesPerWorker.max
    const workers = Array.from({ length: Math.ceil(this.#queues.length / most) }, (_, n) =>
      rowlock.worker({
        lease: 30_000,
        poll: 50,
        maintenance: 100,
        listen: false,
        queues: Object.fromEntries(
          this.#queues.slice(n * most, (n + 1) * most).map((queue) => [queue, { concurrency: 20 }]),
        ),
        handlers: handlersOf(ledger, () => {}, 1),
        logger: { debug() {}, info() {}, warn() {}, error() {} },
      }),
    )
    await Promise.all(workers.map((worker) => worker.start()))
    const { unfinished } = await untilDrained(this.#stage, 120_000)
    await Promise.all(workers.map((worker) => worker.stop()))
    await rowlock.close()
    await ledger.close()
    await settle(this.#stage)
    return check({
      ...(await readWritten(this.#stage)),
      calls: [...this.#calls.values()],
      operations: [],
      deaths: this.#deaths,
      mishaps: this.#mishaps,
      concurrency: {},
      deaf: [],
      transactional: [...TRANSACTIONAL, undone.kind],
      rest: { ...(await readRest(this.#stage)), unfinished },
    })
  }
}
