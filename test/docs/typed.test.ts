// What docs/operating.md tells people to type is typed, in its order, on jobs such as it speaks of.

import { afterAll, beforeAll, expect, test } from 'vitest'
import { createRowlock } from '../../src/index.ts'
import { call } from '../support/cli.ts'
import { createDatabase, type TestDatabase } from '../support/server.ts'
import { TEMPLATE } from '../support/template.ts'
import { callsOf } from './commands.ts'
import { readPage } from './markdown.ts'
import { prepare } from './preludes/operating.ts'

/** These ask first. */
const ASKS = /^(cancel|retry|run-now|prioritize|redrive|discard|purge)$/

let db: TestDatabase
beforeAll(async () => {
  db = await createDatabase('typed', { template: TEMPLATE })
  const rowlock = createRowlock({ connectionString: db.url })
  await prepare(rowlock)
  await rowlock.close()
})
afterAll(() => db?.drop())

test('every command of the page does what it is there for', async () => {
  const calls = callsOf(readPage('docs/operating.md'))
  expect(calls.length).toBeGreaterThan(30)
  const faults: string[] = []
  for (const { args, line } of calls) {
    const asks = ASKS.test(args[0]!) && !args.includes('--dry-run')
    const [verb, ...rest] = args
    const { code, stderr } = await call(asks ? [verb!, '--yes', ...rest] : args, { url: db.url })
    if (code !== 0) faults.push(`docs/operating.md:${line}: rowlock ${args.join(' ')}: ${code} ${stderr}`)
  }
  expect(faults).toEqual([])
})
