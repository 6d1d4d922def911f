// What handlers do in a bench: nothing, and be counted. The parent is told of progress by a timer, not by each job.

import { tell } from '../kit/tell.ts'
import { nowNs } from './shape.ts'

const TELL_MS = 5

let count = 0
let told = 0
let starts: [number, number][] | undefined

/** A handler has started: the whole work of every job. */
export function handled(input: unknown): void {
  count++
  if (starts !== undefined) starts.push([(input as { n: number }).n, nowNs()])
}

/** So many jobs at once, where a loop takes them by batches. */
export function handledMany(jobs: number): void {
  count += jobs
}

/** From now on tell the parent how many were handled: `{ handled: 17 }`, whenever it is another. */
export function tellProgress(): void {
  setInterval(() => {
    if (count === told) return
    told = count
    tell({ handled: count })
  }, TELL_MS)
}

/** From now on keep when each job started; answers those of before. */
export function takeStarts(): [number, number][] {
  const taken = starts ?? []
  starts = []
  return taken
}
