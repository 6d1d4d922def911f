// What a line of a job's story says, and how it ends.

import { expect, test } from 'vitest'
import { painter } from '../../src/cli/paint.ts'
import { storyLines } from '../../src/cli/story.ts'

test('an error that ends with a sign of its own leaves none dangling before what follows', () => {
  const line = {
    at: new Date('2030-01-31T12:00:00Z'),
    event: 'failed',
    attempt: 1,
    worker: 'w1',
    cause: 'Error',
    actor: null,
    reason: null,
    detail: { error: { name: 'Error', message: 'refused, because:\nof this' } },
  }
  const told = storyLines([line], { width: 100, paint: painter(false) })
  expect(told.at(-1)).toMatch(/failed {2}Error: refused, because, on w1$/)
  const bare = { ...line, detail: { error: { name: 'Error', message: '' } } }
  expect(storyLines([bare], { width: 100, paint: painter(false) }).at(-1)).toMatch(/failed {2}Error, on w1$/)
})
