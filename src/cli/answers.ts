// What became of each job, and the sum of it.

import type { Answer } from '../index.ts'
import { count } from './amounts.ts'
import type { Paint } from './paint.ts'

/** Answers that say that a job was left as it is, against what was asked. */
const REFUSALS: ReadonlySet<string> = new Set([
  'already_ended',
  'not_found',
  'busy',
  'wrong_state',
  'dedupe_key_taken',
  'changed',
])

/** Was the job left as it is, against what was asked? */
export const isRefusal = (answer: string): boolean => REFUSALS.has(answer)

/** An answer as one line. */
export function answerLine({ id, answer, detail }: Answer, paint: Paint): string {
  const word = paint(isRefusal(answer) ? 'yellow' : 'green', answer)
  return `${id}  ${word}${detailOf(detail)}`
}

function detailOf(detail: Answer['detail']): string {
  const { state, holder, newJobId } = detail ?? {}
  if (state !== undefined) return ` (it is ${state})`
  if (holder !== undefined) return ` (job ${holder} has it)`
  return newJobId === undefined ? '' : ` (as job ${newJobId})`
}

/** Counts by answer; refusals also by the state they met. */
export class Tally {
  readonly #changed = new Map<string, number>()
  readonly #refused = new Map<string, number>()

  add(answers: readonly Answer[]): void {
    for (const { answer, detail } of answers) {
      const state = detail?.state
      const isRefused = isRefusal(answer)
      const key = isRefused && state !== undefined ? `${answer} (${state})` : answer
      const counts = isRefused ? this.#refused : this.#changed
      counts.set(key, (counts.get(key) ?? 0) + 1)
    }
  }

  get refused(): number {
    return sum(this.#refused)
  }

  /** `3 redriven; 2 not changed: 1 not_found, 1 wrong_state (done)`. */
  toString(): string {
    const refused = this.refused === 0 ? [] : [`${count(this.refused)} not changed: ${listed(this.#refused)}`]
    const changed = this.#changed.size === 0 ? [] : [listed(this.#changed)]
    return [...changed, ...refused].join('; ') || 'nothing to do'
  }
}

const sum = (counts: ReadonlyMap<string, number>): number =>
  [...counts.values()].reduce((all, n) => all + n, 0)

const listed = (counts: ReadonlyMap<string, number>): string =>
  [...counts]
    .sort(([, a], [, b]) => b - a)
    .map(([word, n]) => `${count(n)} ${word}`)
    .join(', ')
