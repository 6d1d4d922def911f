// Where a process is killed: at a statement it sends, or at a moment of its handler.

/** Before it is sent, when it is sent and unanswered, when its answer has come and nobody has heard of it. */
export const MOMENTS = ['before', 'sent', 'answered'] as const
/** When, of a statement. */
export type Moment = (typeof MOMENTS)[number]

/** One point. */
export interface Point {
  /** The name of a statement, or of a moment of a handler: `handler quick: start`. */
  readonly label: string
  /** The how-manieth of this name in the process, from 1. */
  readonly nth: number
  readonly moment: Moment
}

/** What a victim does. */
export const ERRANDS = ['produce', 'work', 'reap'] as const
/** One of them. */
export type Errand = (typeof ERRANDS)[number]

/** What each errand surely sends: a name that is missing is a statement that is tried no longer. */
export const REQUIRED: Readonly<Record<Errand, readonly string[]>> = {
  produce: ['store', 'commit'],
  work: [
    'register',
    'claim',
    'start',
    'hold',
    'complete_in_transaction',
    'commit',
    'rollback',
    'finish',
    'heartbeat',
    'retire',
  ],
  reap: ['reap', 'sweep'],
}

/**
 * What a victim that works need not come to: the eldest worker of a database maintains alone, and the lease of a victim
 * before it may be younger than its own life. The errand `reap` comes to each of them.
 */
export const OF_THE_ELDEST: readonly string[] = ['reap', 'sweep', 'make_days', 'days_due', 'unhandled']

/**
 * A table for which a statement waits, so that it is surely sent and undone when its process or its server dies. Where
 * it can be, that is the audit's: then the verb has changed its rows, and is not at its end.
 *
 * The others are struck as soon as they are written to the socket: begin, commit, rollback and settings take no lock of
 * a table; what reads the catalogs alone would wait only with everybody else; a detach gives up after 100 ms.
 */
export const WAITS_FOR: Readonly<Record<string, string>> = {
  store: 'faults.audit',
  claim: 'faults.audit',
  start: 'faults.audit',
  complete_in_transaction: 'faults.audit',
  finish: 'faults.audit',
  reap: 'faults.audit',
  register: 'faults.lease',
  heartbeat: 'faults.lease',
  retire: 'faults.lease',
  hold: 'rowlock.running',
  // The last table that it looks at.
  sweep: 'rowlock.import',
  make_days: 'rowlock.queue',
  unhandled: 'rowlock.waiting',
  'with step': 'rowlock.payload',
  'insert into': 'faults.asked, faults.booked',
  'select number,': 'rowlock.migration',
  'select name,': 'rowlock.routine',
  'select id::text': 'rowlock.installation',
}

/** What a victim is told. */
export interface Order {
  readonly url: string
  readonly errand: Errand
  /** Its own, so that victims do not meet. */
  readonly queue: string
  /** Absent: it lives, and says what it sent. */
  readonly point?: Point
  /** The postmaster's process id, when it is the server that dies at the point. */
  readonly server?: number
}

/** The name of a statement: the verb it calls, or its first words. */
export function labelOf(text: string): string {
  const [, verb] = /^select (?:.* from )?"rowlock"\."?(\w+)"?\(/.exec(text) ?? []
  return verb ?? text.trim().split(/\s+/).slice(0, 2).join(' ').toLowerCase()
}

/** Each moment of the first so many times of each statement; each moment of a handler once. */
export function pointsOf(counts: readonly (readonly [string, number])[], atMost: number): Point[] {
  return counts.flatMap(([label, count]) => {
    const times = Array.from({ length: Math.min(count, atMost) }, (_, n) => n + 1)
    return label.startsWith('handler')
      ? [{ label, nth: 1, moment: 'before' as const }]
      : times.flatMap((nth) => MOMENTS.map((moment) => ({ label, nth, moment })))
  })
}

/** A sentence that names it. */
export const nameOf = ({ label, nth, moment }: Point): string =>
  label.startsWith('handler') ? `${label}, time ${nth}` : `${moment} ${label}, time ${nth}`
