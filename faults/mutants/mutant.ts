// A mutant: one guard taken out of one file, and the test that must then fail.

/** One guard less. */
export interface Mutant {
  /** What holds while the guard is there. */
  readonly name: string
  /** From the root of the repository. */
  readonly file: string
  /** Occurs in the file exactly once. */
  readonly find: string
  readonly replace: string
  /** `file › name of the test` as vitest reports it. */
  readonly caughtBy: string
}

/** The text without the guard. Errors: the guard is not where the mutant says. */
export function withoutGuard(text: string, { name, file, find, replace }: Mutant): string {
  const [before, after, ...more] = text.split(find)
  if (after === undefined || more.length > 0) {
    const count = after === undefined ? 'not' : `${more.length + 1} times`
    throw new Error(`${file}: the guard of "${name}" is there ${count}: the mutant must follow the code`)
  }
  return `${before}${replace}${after}`
}

/** File and name of the test that catches it. */
export function catcher({ caughtBy }: Mutant): { readonly file: string; readonly name: string } {
  const [file, ...name] = caughtBy.split(' › ')
  return { file: file!, name: name.join(' › ') }
}

/** Guards of one file, in short. */
export type Guards = readonly (readonly [name: string, find: string, replace: string, caughtBy: string])[]
/** By the file that has them, from the root of the repository. */
export type FileGuards = Readonly<Record<string, Guards>>

/** The mutants of several files. */
export function mutantsOf(files: FileGuards): Mutant[] {
  return Object.entries(files).flatMap(([file, guards]) =>
    guards.map(([name, find, replace, caughtBy]) => ({ name, file, find, replace, caughtBy })),
  )
}

/** The mutants of one SQL function. */
export const guardsOf = (verb: string, guards: Guards): Mutant[] =>
  mutantsOf({ [`sql/functions/${verb}.sql`]: guards })

/** A test of the engine. */
export const engine = (file: string, name: string): string => `test/engine/${file}.test.ts › ${name}`
/** A test of the faults. */
export const faults = (file: string, name: string): string => `test/faults/${file}.test.ts › ${name}`
/** What any order of verbs leaves must be what the model says. */
export const MODEL: string = faults(
  'model',
  'after every step of a random history the queue is what the model says',
)
