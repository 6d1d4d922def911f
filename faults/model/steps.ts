// A step of a random run: chosen when it can be done, done to the database and to the model, and then compared.

import { deepStrictEqual } from 'node:assert'
import type fc from 'fast-check'
import type { ModelDatabase } from './queue.ts'
import type { RealDatabase } from './real.ts'

/** A command as fast-check runs it. */
export type Step = fc.AsyncCommand<ModelDatabase, RealDatabase>

/** What a step is: its name and values for the report, when it applies, and what it does. */
export interface StepOptions {
  readonly name: string
  readonly with: object
  readonly can?: (model: ModelDatabase) => boolean
  readonly run: (model: ModelDatabase, real: RealDatabase) => Promise<void>
}

/** Make a step; whatever it does, everything is compared after it. */
export function step({ name, with: values, can = () => true, run }: StepOptions): Step {
  return {
    check: (model) => can(model as ModelDatabase),
    async run(model, real) {
      await run(model, real)
      await real.compare(model)
    },
    toString: () => `${name} ${JSON.stringify(values)}`,
  }
}

/** Both must have answered the same. */
export function same(actual: unknown, expected: unknown): void {
  deepStrictEqual(actual, expected)
}

/** The one that a random number stands for. */
export function pick<T>(list: readonly T[], n: number): T {
  return list[n % list.length]!
}
