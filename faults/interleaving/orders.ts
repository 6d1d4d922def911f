// Every order in which the statements of two actors can follow one another.

/** For actors with so many statements each: lists of who comes next. */
export function ordersOf(first: number, second: number): number[][] {
  if (first === 0) return [new Array<number>(second).fill(1)]
  if (second === 0) return [new Array<number>(first).fill(0)]
  return [
    ...ordersOf(first - 1, second).map((rest) => [0, ...rest]),
    ...ordersOf(first, second - 1).map((rest) => [1, ...rest]),
  ]
}
