// Do the books balance? Pure: from what was acknowledged, what the queue says and what the receivers have on their
// books.

import type { Acknowledged, TakenBack } from './shop.ts'
import type { JobFact } from './watch.ts'

/** Effects by reference, for each kind of job: what its receiver has on its book. */
export type Books = ReadonlyMap<string, ReadonlyMap<string, number>>

export interface Evidence {
  readonly acknowledged: readonly Acknowledged[]
  readonly takenBack: readonly TakenBack[]
  readonly jobs: readonly JobFact[]
  readonly books: Books
}

/** The figures of the account. The first ten of the JSON line come from here. */
export interface Figures {
  /** Jobs whose enqueue was acknowledged: it returned, and its transaction committed. */
  readonly enqueued: number
  /** Of these, those the queue calls done. */
  readonly done: number
  /** Of the done ones, those with an attempt before that failed or timed out. */
  readonly retried: number
  /** Jobs that were taken back from a lost worker at least once. */
  readonly reclaimed: number
  /** Ended by an error that no attempt can mend. */
  readonly failed: number
  /** Failed as often as they may: parked for a person. */
  readonly dead_lettered: number
  readonly cancelled: number
  /** Acknowledged, not failed, dead or cancelled, and on no book. */
  readonly lost: number
  /** References that took effect more than once at their receiver. */
  readonly delivered_twice: number
  /** Effects that no done job accounts for: of a rolled-back transaction, or of a job that ended otherwise. */
  readonly uninvited: number
  /** Acknowledged jobs that have not ended. */
  readonly unfinished: number
  /** Jobs in the queue that nobody was told of. */
  readonly stray: number
  /** Jobs that were enqueued in a transaction which was rolled back on purpose. */
  readonly rolled_back: number
}

export interface Judgement {
  readonly figures: Figures
  /** What does not balance, a sentence each. Empty: the books balance. */
  readonly faults: readonly string[]
}

const EXCUSED = ['failed', 'dead_letter', 'cancelled']
const ENDED = ['done', ...EXCUSED]

export function judge({ acknowledged, takenBack, jobs, books }: Evidence): Judgement {
  const factById = new Map(jobs.map((job) => [job.id, job]))
  const effects = (kind: string, reference: string) => books.get(kind)?.get(reference) ?? 0
  const stateOf = ({ id }: Acknowledged) => factById.get(id)?.state
  const inState = (state: string) => acknowledged.filter((job) => stateOf(job) === state)
  const known = new Set(acknowledged.map(({ id }) => id))

  const done = inState('done')
  const invited = new Set(
    acknowledged
      .filter((job) => !EXCUSED.includes(stateOf(job) ?? 'missing'))
      .map(({ kind, reference }) => `${kind} ${reference}`),
  )
  const taken = [...books].flatMap(([kind, book]) =>
    [...book].map(([reference, times]) => ({ kind, reference, times })),
  )
  const lost = acknowledged.filter(
    (job) => !EXCUSED.includes(stateOf(job) ?? 'missing') && effects(job.kind, job.reference) === 0,
  )
  const twice = taken.filter(({ times }) => times > 1)
  const uninvited = taken.filter(({ kind, reference }) => !invited.has(`${kind} ${reference}`))
  const unfinished = acknowledged.filter((job) => !ENDED.includes(stateOf(job) ?? 'missing'))
  const stray = jobs.filter(({ id }) => !known.has(id))
  const had = (outcome: string) => (job: Acknowledged) =>
    factById.get(job.id)?.outcomes.includes(outcome) === true

  const figures: Figures = {
    enqueued: acknowledged.length,
    done: done.length,
    retried: done.filter((job) => had('failed')(job) || had('timed_out')(job)).length,
    reclaimed: acknowledged.filter(had('lost')).length,
    failed: inState('failed').length,
    dead_lettered: inState('dead_letter').length,
    cancelled: inState('cancelled').length,
    lost: lost.length,
    delivered_twice: twice.length,
    uninvited: uninvited.length,
    unfinished: unfinished.length,
    stray: stray.length,
    rolled_back: takenBack.length,
  }
  const fault = (found: readonly unknown[], what: string, name: (one: never) => string) =>
    found.length === 0 ? [] : [`${found.length} ${what}: ${some(found.map((one) => name(one as never)))}`]
  const named = ({ id, kind, reference }: Acknowledged) => `job ${id} (${kind} ${reference})`
  const noted = ({ kind, reference, times }: (typeof taken)[number]) => `${kind} ${reference} × ${times}`
  return {
    figures,
    faults: [
      ...fault(lost, 'acknowledged and on no book', named),
      ...fault(twice, 'taken to the books more than once', noted),
      ...fault(uninvited, 'on the books though no done job accounts for it', noted),
      ...fault(unfinished, 'not ended', named),
      ...fault(stray, 'in the queue that nobody enqueued', ({ id, kind }: JobFact) => `job ${id} (${kind})`),
    ],
  }
}

const some = (names: readonly string[]) =>
  names.length <= 5 ? names.join(', ') : `${names.slice(0, 5).join(', ')} and ${names.length - 5} more`

/** What a whole run promises to show, and did not. */
export function shortfalls(figures: Figures, killedWorkers: number): string[] {
  const promised: readonly (readonly [number, string])[] = [
    [killedWorkers, 'no worker was killed'],
    [figures.reclaimed, 'no job was reclaimed'],
    [figures.retried, 'no job was retried'],
    [figures.failed, 'no job failed for good'],
    [figures.dead_lettered, 'no job became a dead letter'],
    [figures.cancelled, 'no job was cancelled'],
    [figures.rolled_back, 'no transaction was rolled back'],
  ]
  return promised.filter(([count]) => count === 0).map(([, sentence]) => sentence)
}
