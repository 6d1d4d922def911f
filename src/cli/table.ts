// Rows as a table that fits its width: columns are cut with an ellipsis as far as they may be, then the least important
// ones are left out. Lines never wrap, and data never reaches the terminal as anything but text.

import type { Paint, Style } from './paint.ts'
import { cut, visible, widthOf, wrap } from './visible.ts'

export interface Column<Row> {
  readonly head: string
  readonly of: (row: Row) => string
  /** Numbers stand to the right. */
  readonly isNumber?: boolean
  /** May be cut, and should keep so many columns. Default: it is not cut. */
  readonly min?: number
  /** The lowest is left out first when there is no room. Default: never left out. */
  readonly weight?: number
  readonly style?: (row: Row) => Style | undefined
  /** Leave it out when no row has anything to show. */
  readonly isOptional?: boolean
}

export interface Frame {
  readonly width: number
  readonly paint: Paint
}

const GAP = '  '
const NARROWEST = 4

/** A table whose widths are settled: more rows can be shown in the same columns. */
export interface Layout<Row> {
  readonly head: string
  lines(rows: readonly Row[]): string[]
}

/** Settle the columns by these rows. */
export function layout<Row>(
  sample: readonly Row[],
  columns: readonly Column<Row>[],
  { width, paint }: Frame,
): Layout<Row> {
  const textOf = (column: Column<Row>, row: Row) => visible(column.of(row))
  let used = columns
    .map((column) => ({ column, texts: sample.map((row) => textOf(column, row)) }))
    .filter(({ column, texts }) => column.isOptional !== true || texts.some((text) => text !== ''))
    .map(({ column, texts }) => ({ column, natural: Math.max(...[column.head, ...texts].map(widthOf)) }))
  const head = ({ column }: (typeof used)[number]) => widthOf(column.head)
  const least = (each: (typeof used)[number]) =>
    Math.min(each.natural, Math.max(each.column.min ?? each.natural, head(each)))
  const room = () => width - GAP.length * (used.length - 1)
  while (sum(used.map(least)) > room()) {
    const light = Math.min(...used.map(({ column }) => column.weight ?? Number.POSITIVE_INFINITY))
    if (light === Number.POSITIVE_INFINITY) break
    const at = used.findLastIndex(({ column }) => column.weight === light)
    used = used.filter((_, n) => n !== at)
  }
  // When even that is too much, whatever may be cut is cut below what it should keep, rather than break the line.
  const narrowest = (each: (typeof used)[number]) =>
    each.column.min === undefined ? least(each) : Math.min(least(each), Math.max(NARROWEST, head(each)))
  const natural = used.map((each) => each.natural)
  const isTight = sum(used.map(least)) > room()
  const widths = share(natural, used.map(isTight ? narrowest : least), room())
  const line = (
    cell: (column: Column<Row>) => { readonly text: string; readonly style: Style | undefined },
  ) =>
    used
      .map(({ column }, n) => {
        const { text, style } = cell(column)
        const short = cut(text, widths[n]!)
        const painted = style === undefined ? short : paint(style, short)
        const pad = ' '.repeat(Math.max(0, widths[n]! - widthOf(short)))
        if (column.isNumber) return pad + painted
        return n === used.length - 1 ? painted : painted + pad
      })
      .join(GAP)
      .trimEnd()
  return {
    head: line(({ head }) => ({ text: head, style: 'bold' })),
    lines: (rows) =>
      rows.map((row) => line((column) => ({ text: textOf(column, row), style: column.style?.(row) }))),
  }
}

/** The lines of a table, head first. */
export function table<Row>(rows: readonly Row[], columns: readonly Column<Row>[], frame: Frame): string[] {
  const { head, lines } = layout(rows, columns, frame)
  return [head, ...lines(rows)]
}

/** Give each its natural width where there is room; else take from the widest first, none below its least. */
function share(natural: readonly number[], least: readonly number[], room: number): number[] {
  const widths = [...natural]
  for (let over = sum(widths) - room; over > 0; over--) {
    let widest = -1
    for (const [n, width] of widths.entries()) {
      if (width > least[n]! && (widest < 0 || width > widths[widest]!)) widest = n
    }
    if (widest < 0) break
    widths[widest]!--
  }
  return widths
}

const sum = (numbers: readonly number[]): number => numbers.reduce((all, n) => all + n, 0)

/** What belongs to a row and has no room in it: indented below it, in as many lines as it takes. */
export function below({ width, paint }: Frame, text: string): string[] {
  return text === '' ? [] : wrap(visible(text), width - 4).map((line) => `    ${paint('gray', line)}`)
}

/** Names and values, one a line, the values in one column; values that are empty are left out. */
export function fields(pairs: readonly (readonly [string, string | undefined])[], paint: Paint): string[] {
  const shown = pairs.filter((pair): pair is [string, string] => pair[1] !== undefined && pair[1] !== '')
  const width = Math.max(0, ...shown.map(([name]) => name.length))
  return shown.map(([name, value]) => `${paint('gray', name.padEnd(width))}  ${value}`)
}
