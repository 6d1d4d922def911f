// Plots as SVG, drawn from the figures of a result; legible in light and dark, in black and white, and without colour:
// lines are dashed and marked each in its own way, bars carry their figures and are full, half or hollow. A bar that is
// far longer than most is cut, so that the others can be compared; its figure says how long it is.

/** One line or one set of bars. */
export interface Series {
  readonly name: string
  /** `x` is a number of an axis, or the name of a group of bars. */
  readonly points: readonly { readonly x: number | string; readonly y: number }[]
}

/** What is drawn; the file is `plots/<scenario>-<name>.svg` beside RESULTS.md. */
export interface Plot {
  readonly name: string
  readonly title: string
  readonly kind: 'bars' | 'lines'
  /** With the unit: `workers`, `claim p95, ms`. */
  readonly xLabel: string
  readonly yLabel: string
  readonly xScale?: 'linear' | 'log'
  readonly yScale?: 'linear' | 'log'
  readonly series: readonly Series[]
}

const WIDTH = 720
const INKS = 6
const STYLE = `text{font:13px system-ui,sans-serif;fill:#1f2328}.title{font-weight:600;font-size:15px}
.soft{fill:#59636e}.axis{stroke:#818b98;fill:none}.grid{stroke:#d1d9e0;fill:none}.page{fill:#fff}
.line{fill:none;stroke-width:2}
.s0{stroke:#0969da;fill:#0969da}.s1{stroke:#bc4c00;fill:#bc4c00}.s2{stroke:#1a7f37;fill:#1a7f37}
.s3{stroke:#8250df;fill:#8250df}.s4{stroke:#59636e;fill:#59636e}.s5{stroke:#9a6700;fill:#9a6700}
.line.s0,.line.s1,.line.s2,.line.s3,.line.s4,.line.s5{fill:none}
@media(prefers-color-scheme:dark){text{fill:#f0f6fc}.soft{fill:#9198a1}.axis{stroke:#656c76}.grid{stroke:#3d444d}
.page{fill:#0d1117}.s0{stroke:#58a6ff;fill:#58a6ff}.s1{stroke:#f0883e;fill:#f0883e}.s2{stroke:#3fb950;fill:#3fb950}
.s3{stroke:#bc8cff;fill:#bc8cff}.s4{stroke:#9198a1;fill:#9198a1}.s5{stroke:#d29922;fill:#d29922}}`
/** How full the bars of a set are: sets differ without colour. */
const FILLS = [1, 0.45, 0.1]
/** Names that begin so are ours. */
const OURS = 'rowlock'
const DASHES = ['', '8 4', '2 3', '10 3 2 3', '5 5', '14 4']

/** The SVG of a plot. */
export function drawn(plot: Plot): string {
  return plot.kind === 'bars' ? bars(plot) : lines(plot)
}

function bars({ title, yLabel, yScale, series }: Plot): string {
  const groups = [...new Set(series.flatMap(({ points }) => points.map(({ x }) => String(x))))]
  const LEFT = 200
  const ROW = 22
  const gap = 10
  const isOne = series.length === 1
  const key = isOne ? { height: 0, svg: '' } : legend(series, 68)
  const top = isOne ? 62 : 86 + key.height
  const most = mostOf(series, yScale)
  const widthOf = widths(series, yScale, most)
  const room = WIDTH - LEFT - 90
  const body: string[] = []
  let y = top
  for (const group of groups) {
    const mine = series.flatMap(({ points }, n) => {
      const point = points.find(({ x }) => String(x) === group)
      return point === undefined || !Number.isFinite(point.y) ? [] : [{ value: point.y, n }]
    })
    const middle = y + (mine.length * ROW) / 2 + 1
    body.push(`<text x="${LEFT - 10}" y="${middle}" text-anchor="end">${escaped(group)}</text>`)
    for (const { value, n } of mine) {
      const isCut = value > most
      const width = Math.max(1, Math.round(widthOf(Math.min(value, most)) * room))
      // Of one set, ours stand out.
      const ink = isOne && !group.startsWith(OURS) ? [4, 1] : [n, n]
      body.push(bar(ink[0]!, ink[1]!, LEFT, y, width, ROW - 8))
      if (isCut) body.push(cut(LEFT + width - 28, y, ROW - 8))
      body.push(`<text class="soft" x="${LEFT + width + 8}" y="${y + 12}">${short(value)}</text>`)
      y += ROW
    }
    y += gap
  }
  body.push(`<line class="axis" x1="${LEFT}" x2="${LEFT}" y1="${top - 6}" y2="${y - gap}"/>`)
  body.push(key.svg)
  return page(title, yLabel, y + 6, body)
}

/** One bar: full, half or hollow, so that sets differ without colour. */
function bar(ink: number, fill: number, x: number, y: number, width: number, height: number): string {
  const opacity = FILLS[fill % FILLS.length]
  return `<rect class="s${ink % INKS}" fill-opacity="${opacity}" x="${x}" y="${y}" width="${width}" height="${height}"/>`
}

/** A slanted gap: the bar goes on. */
function cut(x: number, y: number, height: number): string {
  return `<path class="page" d="M${x} ${y + height + 1}l6 ${-height - 2}h6l-6 ${height + 2}z"/>`
}

/** Where bars end. Above it they are cut: a few that are ten times as long as most leave the others no room. */
function mostOf(series: readonly Series[], yScale: Plot['yScale']): number {
  const all = heights(series)
  const longest = all.at(-1) ?? 1
  const middle = all[all.length >> 1] ?? longest
  return yScale !== 'log' && longest > 10 * middle ? 4 * middle : longest
}

/** Lengths of bars that can be drawn, from the least. */
function heights(series: readonly Series[]): number[] {
  const all = series.flatMap(({ points }) => points.map(({ y }) => y))
  return all.filter((y) => Number.isFinite(y) && y > 0).sort((a, b) => a - b)
}

/** Part of the room that a bar takes. On a log scale the shortest has a tenth of it. */
function widths(series: readonly Series[], kind: Plot['yScale'], most: number): (value: number) => number {
  const [least] = heights(series)
  if (kind !== 'log' || least === undefined) return (value) => value / most
  const span = Math.log10(most / least) || 1
  return (value) => (value > 0 ? 1 - (0.9 * Math.log10(most / value)) / span : 0)
}

function lines({ title, xLabel, yLabel, xScale, yScale, series }: Plot): string {
  const key = series.length > 1 ? legend(series, 68, true) : { height: 0, svg: '' }
  const top = series.length > 1 ? 90 + key.height : 64
  const box = { left: 64, right: WIDTH - 24, top, bottom: 366 + key.height }
  const all = series.flatMap(({ points }) => points).filter(({ y }) => Number.isFinite(y))
  const xs = [...new Set(all.map(({ x }) => Number(x)))].sort((a, b) => a - b)
  const onX = scale(xs, xScale, [box.left, box.right], false)
  const ys = all.map(({ y }) => y)
  const onY = scale(ys, yScale, [box.bottom, box.top], yScale !== 'log')
  const body: string[] = []
  for (const value of ticks(ys, yScale)) {
    const y = onY(value)
    body.push(`<line class="grid" x1="${box.left}" x2="${box.right}" y1="${y}" y2="${y}"/>`)
    body.push(`<text class="soft" x="${box.left - 8}" y="${y + 4}" text-anchor="end">${short(value)}</text>`)
  }
  for (const value of xs.length <= 12 ? xs : ticks(xs, xScale)) {
    const x = onX(value)
    body.push(
      `<text class="soft" x="${x}" y="${box.bottom + 20}" text-anchor="middle">${short(value)}</text>`,
    )
  }
  body.push(`<path class="axis" d="M${box.left} ${box.top}V${box.bottom}H${box.right}"/>`)
  const middle = (box.left + box.right) / 2
  body.push(`<text x="${middle}" y="${box.bottom + 42}" text-anchor="middle">${escaped(xLabel)}</text>`)
  series.forEach(({ name, points }, n) => {
    const known = points.filter(({ y }) => Number.isFinite(y))
    const path = known.map(({ x, y }, i) => `${i === 0 ? 'M' : 'L'}${onX(Number(x))} ${onY(y)}`).join('')
    const dash = DASHES[n % INKS] === '' ? '' : ` stroke-dasharray="${DASHES[n % INKS]}"`
    // Ours are bold.
    const bold = series.length > 1 && name.startsWith(OURS) ? ' style="stroke-width:3.5"' : ''
    body.push(`<path class="line s${n % INKS}"${bold}${dash} d="${path}"/>`)
    for (const { x, y } of known) body.push(mark(n, onX(Number(x)), onY(y)))
  })
  body.push(key.svg)
  return page(title, yLabel, box.bottom + 56, body)
}

function page(title: string, yLabel: string, height: number, body: readonly string[]): string {
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img">
<title>${escaped(title)}</title>
<style>${STYLE}</style>
<rect class="page" width="${WIDTH}" height="${height}"/>
<text class="title" x="16" y="24">${escaped(title)}</text>
<text class="soft" x="16" y="43">${escaped(yLabel)}</text>
${body.join('\n')}
</svg>
`
}

/** What each ink means, in as many lines as it takes; the first has the height 0. */
function legend(series: readonly Series[], top: number, isLine = false): { height: number; svg: string } {
  const SIGN = 30
  const LINE = 20
  let x = 16
  let y = top
  const entries = series.map(({ name }, n) => {
    const width = SIGN + name.length * 7.4
    if (x > 16 && x + width > WIDTH - 16) {
      x = 16
      y += LINE
    }
    const dash = DASHES[n % INKS] === '' ? '' : ` stroke-dasharray="${DASHES[n % INKS]}"`
    const sample = isLine
      ? `<path class="line s${n % INKS}"${dash} d="M${x} ${y - 4}h24"/>${mark(n, x + 12, y - 4)}`
      : bar(n, n, x, y - 10, 24, 10)
    const text = `<text x="${x + SIGN}" y="${y}">${escaped(name)}</text>`
    x += width + 16
    return sample + text
  })
  return { height: y - top, svg: entries.join('\n') }
}

/** A sign of its own for each line: circle, square, triangle. */
function mark(n: number, x: number, y: number): string {
  const ink = `class="s${n % INKS}"`
  if (n % 3 === 0) return `<circle ${ink} cx="${x}" cy="${y}" r="3.5"/>`
  if (n % 3 === 1) return `<rect ${ink} x="${x - 3.5}" y="${y - 3.5}" width="7" height="7"/>`
  return `<path ${ink} d="M${x} ${y - 4.5}l4.5 8h-9z"/>`
}

function scale(
  values: readonly number[],
  kind: Plot['xScale'],
  [from, to]: readonly [number, number],
  fromZero: boolean,
): (value: number) => number {
  const of = (value: number): number => (kind === 'log' ? Math.log10(Math.max(value, 1e-9)) : value)
  const low = fromZero ? 0 : Math.min(...values.map(of))
  const high = Math.max(...values.map(of))
  const span = high - low || 1
  return (value) => Math.round((from + ((of(value) - low) / span) * (to - from)) * 10) / 10
}

function ticks(values: readonly number[], kind: Plot['yScale']): number[] {
  const high = Math.max(...values)
  const low = Math.min(...values)
  if (kind === 'log') {
    const first = Math.ceil(Math.log10(Math.max(low, 1e-9)) - 1e-9)
    const last = Math.floor(Math.log10(high) + 1e-9)
    return Array.from({ length: Math.max(0, last - first + 1) }, (_, n) => 10 ** (first + n))
  }
  if (!(high > 0)) return [0]
  const rough = high / 5
  const unit = 10 ** Math.floor(Math.log10(rough))
  const step = [1, 2, 5, 10].map((n) => n * unit).find((n) => n >= rough) ?? unit
  return Array.from({ length: Math.floor(high / step + 1e-9) + 1 }, (_, n) => n * step)
}

/** `12.3M`, `45k`, `1.25k`, `925`. */
function short(value: number): string {
  const size = Math.abs(value)
  if (size >= 1e6) return `${Number((value / 1e6).toPrecision(3))}M`
  if (size >= 1e3) return `${Number((value / 1e3).toPrecision(3))}k`
  return String(Number(value.toPrecision(3)))
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
