// Live progress: on a terminal a few lines redrawn in place, elsewhere plain lines now and then. Never on stdout.

import type { Count } from './watch.ts'

/** What the display shows at one moment. */
export interface Sight {
  readonly counts: readonly Count[]
  readonly acknowledged: number
  readonly erp: string
  readonly workers: readonly string[]
}

interface Screen {
  write(text: string): unknown
  readonly isTTY?: boolean
  readonly columns?: number
}

const COLUMNS: readonly (readonly [title: string, states: readonly string[]])[] = [
  ['waiting', ['queued', 'retryable']],
  ['running', ['running']],
  ['done', ['done']],
  ['failed', ['failed']],
  ['dead', ['dead_letter']],
  ['cancelled', ['cancelled']],
]
const PLAIN_EVERY_MS = 2_000

export class Progress {
  readonly #screen: Screen
  readonly #isLive: boolean
  readonly #isColored: boolean
  readonly #startedAt = performance.now()
  #drawn = 0
  #block: string[] = []
  #saidAt = 0

  constructor(screen: Screen = process.stderr, environment: NodeJS.ProcessEnv = process.env) {
    this.#screen = screen
    this.#isLive = screen.isTTY === true && environment.TERM !== 'dumb'
    this.#isColored = this.#isLive && !environment.NO_COLOR
    if (this.#isLive) screen.write('\x1b[?25l')
  }

  /** How often a new sight is worth the look. Unit: ms. */
  get everyMs(): number {
    return this.#isLive ? 250 : 500
  }

  /** Something happened: it stays on the screen, with its time. */
  event(text: string): void {
    this.#erase()
    this.#screen.write(`${this.#dim(this.#clock())}  ${text}\n`)
    this.#draw()
  }

  show(sight: Sight): void {
    if (this.#isLive) {
      this.#erase()
      this.#block = this.#table(sight)
      this.#draw()
    } else if (performance.now() - this.#saidAt >= PLAIN_EVERY_MS) {
      this.#saidAt = performance.now()
      const figures = COLUMNS.map(([title, states]) => `${title} ${total(sight.counts, states)}`).join('  ')
      this.#screen.write(
        `${this.#clock()}  ${figures}${sight.erp === 'well' ? '' : `  (ERP ${sight.erp})`}\n`,
      )
    }
  }

  /** Take the display away and give the cursor back. Idempotent. */
  close(): void {
    this.#erase()
    this.#block = []
    if (this.#isLive) this.#screen.write('\x1b[?25h')
  }

  #table({ counts, acknowledged, erp, workers }: Sight): string[] {
    const queues = [...new Set(counts.map(({ queue }) => queue))].sort()
    const row = (name: string, of: readonly Count[]) =>
      `  ${name.padEnd(10)}${COLUMNS.map(([, states]) => String(total(of, states) || '·').padStart(11)).join('')}`
    return [
      '',
      this.#dim(`  ${''.padEnd(10)}${COLUMNS.map(([title]) => title.padStart(11)).join('')}`),
      ...queues.map((name) =>
        row(
          name,
          counts.filter(({ queue }) => queue === name),
        ),
      ),
      this.#bold(row('all', counts)),
      '',
      this.#dim(`  ${acknowledged} acknowledged · ERP ${erp} · ${workers.join(', ') || 'no worker'}`),
    ]
  }

  #draw(): void {
    if (!this.#isLive) return
    const width = this.#screen.columns ?? 80
    for (const line of this.#block) this.#screen.write(`${cut(line, width - 1)}\n`)
    this.#drawn = this.#block.length
  }

  #erase(): void {
    if (this.#drawn > 0) this.#screen.write(`\x1b[${this.#drawn}A\x1b[J`)
    this.#drawn = 0
  }

  #clock(): string {
    return `${((performance.now() - this.#startedAt) / 1000).toFixed(1).padStart(6)} s`
  }

  #dim = (text: string) => (this.#isColored ? `\x1b[2m${text}\x1b[22m` : text)
  #bold = (text: string) => (this.#isColored ? `\x1b[1m${text}\x1b[22m` : text)
}

const total = (counts: readonly Count[], states: readonly string[]) =>
  counts.filter(({ state }) => states.includes(state)).reduce((sum, { count }) => sum + count, 0)

/** A line that is too wide would wrap, and the next redraw would miss it. Colour codes take no room. */
function cut(line: string, width: number): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the codes themselves
  const parts = line.split(/(\x1b\[\d+m)/)
  let left = width
  return parts
    .map((part, index) => {
      if (index % 2 === 1) return part
      const kept = part.slice(0, Math.max(0, left))
      left -= kept.length
      return kept
    })
    .join('')
}
