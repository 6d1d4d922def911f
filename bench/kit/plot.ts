// Plots as SVG, drawn from the figures of a result; legible in light and dark, in black and white, and without colour.

/** One line or one set of bars. */
export interface Series {
  readonly name: string
  /** `x` is a number of an axis, or the name of a group of bars. */
  readonly points: readonly { readonly x: number | string; readonly y: number }[]
}

/** What is drawn; the file is `<scenario>-<name>.svg` beside RESULTS.md. */
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
