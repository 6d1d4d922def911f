// What it costs to judge ids whose queue no statistics know, as it is just after many were enqueued: rows that a join
// compares, counted in the plans of all statements inside.

import { afterAll, beforeAll, expect, test } from 'vitest'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { fill } from './by-hand.ts'

let db: TestRowlock
beforeAll(async () => {
  db = await rowlockDatabase('unknown_queue')
  await fill(db, 20_000, { queue: `'known'` })
  await db.sql('analyze rowlock.waiting')
  await fill(db, 2_000, { queue: `'new'` })
})
afterAll(() => db.drop())

interface Node {
  readonly Plans?: readonly Node[]
  readonly 'Actual Rows'?: number
  readonly 'Actual Loops'?: number
  readonly 'Rows Removed by Join Filter'?: number
}

/** Rows that went through any node of any plan, and those that a join threw away. */
async function rowsTouched(text: string, values: unknown[]): Promise<number> {
  const session = await db.session()
  await session.query(`load 'auto_explain'`)
  for (const [name, value] of Object.entries({
    log_min_duration: '0',
    log_analyze: 'on',
    log_timing: 'off',
    log_nested_statements: 'on',
    log_format: 'json',
    log_level: 'notice',
  }))
    await session.query(`set auto_explain.${name} = '${value}'`)
  let rows = 0
  const count = (node: Node): void => {
    const loops = node['Actual Loops'] ?? 0
    rows += ((node['Actual Rows'] ?? 0) + (node['Rows Removed by Join Filter'] ?? 0)) * loops
    for (const plan of node.Plans ?? []) count(plan)
  }
  let plans = 0
  session.on('notice', ({ message }) => {
    const found = message?.match(/plan:\s*(\{[\s\S]*\})/)?.[1]
    if (found === undefined) return
    plans++
    count((JSON.parse(found) as { Plan: Node }).Plan)
  })
  await session.query(text, values)
  await session.end()
  expect(plans).toBeGreaterThan(1)
  return rows
}

test('the ids of a step are looked up one by one, not the whole queue for each', async () => {
  const ids = (await db.sql(`select id::text from rowlock.waiting where queue = 'new' limit 500`)).map(
    (row) => row.id,
  )
  const rows = await rowsTouched('select rowlock.search($1, $2)', [{ queue: 'new' }, ids])
  expect(rows).toBeLessThan(500 * 20)
})

test('the first page of the queue reads the queue a few times, not once for each job', async () => {
  const rows = await rowsTouched('select rowlock.jobs_page($1, 50, null)', [{ queue: 'new' }])
  expect(rows).toBeLessThan(2_000 * 30)
})
