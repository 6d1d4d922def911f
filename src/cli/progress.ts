// How far a long change is, on stderr: a bar that is redrawn on a terminal, a plain line every few seconds elsewhere.

import { count, span } from './amounts.ts'
import type { Shell } from './shell.ts'
import { cut } from './visible.ts'

const REDRAW_MS = 100
const LINE_EVERY_MS = 5_000
/** Rates are of this span, so that they follow what happens now. */
const WINDOW_MS = 10_000
const BAR = 24

export interface Goal {
  /** How many there will be, as far as is known. */
  readonly total?: number
  readonly about?: boolean
  /** What is counted. Default: jobs. */
  readonly what?: string
}

export class Progress {
  readonly #shell: Shell
  readonly #goal: Goal
  readonly #isTerminal: boolean
  readonly #points: { at: number; done: number }[]
  #drawnAt: number
  #isDrawn = false

  /** `done`: how many were done before this call began. */
  constructor(shell: Shell, goal: Goal, done = 0) {
    this.#shell = shell
    this.#goal = goal
    this.#isTerminal = shell.io.stderr.isTTY === true
    const at = shell.io.now()
    this.#points = [{ at, done }]
    this.#drawnAt = this.#isTerminal ? Number.NEGATIVE_INFINITY : at
  }

  /** So many are done by now. */
  update(done: number): void {
    const at = this.#shell.io.now()
    this.#points.push({ at, done })
    while (this.#points.length > 2 && at - this.#points[1]!.at > WINDOW_MS) this.#points.shift()
    if (at - this.#drawnAt < (this.#isTerminal ? REDRAW_MS : LINE_EVERY_MS)) return
    this.#drawnAt = at
    if (!this.#isTerminal) {
      this.#shell.say(this.#line(done))
      return
    }
    const width = this.#shell.talkWidth - 1
    this.#shell.io.stderr.write(`\r\u001b[2K${cut(this.#line(done), width)}`)
    this.#isDrawn = true
  }

  /** Take the bar away; what comes next says how it ended. */
  end(): void {
    if (this.#isDrawn) this.#shell.io.stderr.write('\r\u001b[2K')
    this.#isDrawn = false
  }

  #line(done: number): string {
    const { total, about = false, what = 'jobs' } = this.#goal
    const perSecond = this.#rate()
    const rate = perSecond > 0 ? ` · ${count(perSecond)}/s` : ''
    if (total === undefined) return `${count(done)} ${what}${rate}`
    const share = total === 0 ? 1 : Math.min(1, done / total)
    const left = perSecond > 0 && done < total ? ` · ${span(((total - done) / perSecond) * 1_000)} left` : ''
    const text = `${count(done)} of ${count(total, about)} ${what}${rate}${left}`
    if (!this.#isTerminal) return `${Math.floor(share * 100)} % · ${text}`
    const full = Math.round(share * BAR)
    return `${'█'.repeat(full)}${'░'.repeat(BAR - full)} ${text}`
  }

  #rate(): number {
    const first = this.#points[0]!
    const last = this.#points.at(-1)!
    return last.at > first.at ? ((last.done - first.done) * 1_000) / (last.at - first.at) : 0
  }
}
