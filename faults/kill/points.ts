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

/** What a victim is told. */
export interface Order {
  readonly url: string
  readonly errand: Errand
  /** Its own, so that victims do not meet. */
  readonly queue: string
  /** Absent: it lives, and says what it sent. */
  readonly point?: Point
  /** Who dies at the point. */
  readonly whose: 'process' | 'server'
}

/** The name of a statement: the verb it calls, or its first words. */
export function labelOf(text: string): string {
  const [, verb] = /^select "rowlock"\."?(\w+)"?\(/.exec(text) ?? []
  return verb ?? text.trim().split(/\s+/).slice(0, 2).join(' ').toLowerCase()
}

/** A sentence that names it. */
export const nameOf = ({ label, nth, moment }: Point): string =>
  label.startsWith('handler') ? `${label}, time ${nth}` : `${moment} ${label}, time ${nth}`
