// One mutant, and whether its test missed the guard.

import { catcher, type Mutant } from './mutant.ts'
import type { Trials } from './trial.ts'

/** What is said of it. */
export interface Judgement {
  readonly isCaught: boolean
  readonly line: string
  readonly failed: readonly string[]
}

/** Run its test on it; `files`: all their tests instead. */
export async function judge(trials: Trials, mutant: Mutant, files?: readonly string[]): Promise<Judgement> {
  const { file, name } = catcher(mutant)
  const began = performance.now()
  const { failed, ran, says } = files
    ? await trials.try(mutant, files)
    : await trials.try(mutant, [file], name)
  const seconds = ((performance.now() - began) / 1000).toFixed(1)
  const isCaught = files ? failed.length > 0 : failed.includes(mutant.caughtBy)
  const word = isCaught ? 'caught  ' : 'SURVIVED'
  const by = files || isCaught ? '' : `; not missed by ${mutant.caughtBy}`
  const line =
    `${word} ${mutant.file}: ${mutant.name} (${seconds} s, ${ran} ran${by}) ${isCaught ? '' : says}`.trim()
  return { isCaught, line, failed }
}
