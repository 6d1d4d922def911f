// Equality within `toMatchObject`: there an object stands for every object that has its fields, and `{}` for any.

import { isDeepStrictEqual } from 'node:util'
import { expect } from 'vitest'

/** This and nothing else. */
export const exactly = (value: object): object =>
  expect.toSatisfy((found) => isDeepStrictEqual(found, value), `exactly ${JSON.stringify(value)}`)
