// What a worker whose queues share its slots can be asked for, checked early.

import { RowlockError } from '../ground/errors.ts'
import { checkInteger } from '../ground/integer.ts'
import { LIMITS } from '../ground/limits.ts'
import { suggest } from '../ground/nearest.ts'
import { show } from '../ground/show.ts'
import { StrictTurns, type Turns, WeightedTurns } from './turns.ts'

/** How queues share slots. */
export interface Sharing {
  /** Handlers that run at once, in all queues. */
  readonly slots: number
  /** The queues, the first one first; undefined: in turns by weight. */
  readonly precedence: readonly string[] | undefined
  readonly weights: ReadonlyMap<string, number>
}

export interface SharingOptions {
  readonly slots?: unknown
  readonly precedence?: unknown
  readonly queues: Readonly<
    Record<string, { readonly weight?: unknown; readonly prefetch?: unknown } | undefined>
  >
}

/** Undefined where each queue has slots of its own. Errors: INVALID_OPTION. */
export function sharingOf({ slots, precedence, queues }: SharingOptions): Sharing | undefined {
  const names = Object.keys(queues)
  const weighed = names.find((queue) => queues[queue]?.weight !== undefined)
  if (slots === undefined) {
    const needy = precedence !== undefined ? 'precedence' : weighed && `queues.${weighed}.weight`
    if (needy === undefined) return undefined
    throw refusal(needy, `${needy} is about slots that queues share: say how many there are, with slots`)
  }
  if (precedence !== undefined && weighed !== undefined) {
    throw refusal(
      `queues.${weighed}.weight`,
      'weights and a precedence exclude each other: in turns, or one strictly before the other',
    )
  }
  for (const queue of names) {
    if (![undefined, 0].includes(queues[queue]?.prefetch as undefined)) {
      const path = `queues.${queue}.prefetch`
      throw refusal(
        path,
        `${path} must be 0 with shared slots: whose turn it is is said when a slot is free, not before`,
      )
    }
  }
  return {
    slots: checkInteger(slots, { name: 'slots', min: LIMITS.slots.min, max: LIMITS.slots.max }),
    precedence: precedence === undefined ? undefined : orderOf(precedence, names),
    weights: new Map(
      names.map((queue) => [
        queue,
        checkInteger(queues[queue]?.weight ?? LIMITS.weight.default, {
          name: `queues.${queue}.weight`,
          min: LIMITS.weight.min,
          max: LIMITS.weight.max,
        }),
      ]),
    ),
  }
}

export const turnsOf = ({ precedence, weights }: Sharing): Turns =>
  precedence === undefined ? new WeightedTurns(weights) : new StrictTurns(precedence)

/** Slots of queues together. */
export function slotsOf(
  queues: readonly { readonly concurrency: number }[],
  sharing: Sharing | undefined,
): number {
  const own = queues.reduce((sum, { concurrency }) => sum + concurrency, 0)
  return sharing === undefined ? own : Math.min(own, sharing.slots)
}

/** Each queue once: one that is left out would have no place. */
function orderOf(precedence: unknown, names: readonly string[]): readonly string[] {
  if (!Array.isArray(precedence)) {
    throw refusal(
      'precedence',
      `precedence is a list of the queues, the first one first; got ${show(precedence)}`,
    )
  }
  for (const [n, queue] of precedence.entries()) {
    const path = `precedence[${n}]`
    if (!names.includes(queue)) {
      const meant = typeof queue === 'string' ? `; ${suggest(queue, names)}` : ''
      throw refusal(path, `this worker does not serve the queue ${show(queue)}${meant}`)
    }
    if (precedence.indexOf(queue) !== n) throw refusal(path, `the queue ${show(queue)} has two places`)
  }
  const missing = names.find((queue) => !precedence.includes(queue))
  if (missing !== undefined)
    throw refusal('precedence', `precedence has no place for the queue ${show(missing)}`)
  return [...precedence]
}

const refusal = (path: string, message: string): RowlockError =>
  new RowlockError('INVALID_OPTION', message, { path })
