// Filters are judged alike by SQL and by the client; and every condition, taken out of the SQL, is missed.

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { FILTER_NAMES, FILTER_STATES, filterText, type JobFilter } from '../../src/ground/filter.ts'
import { LIMITS } from '../../src/ground/limits.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import type { Row } from './by-hand.ts'
import { crowd, everyJob, FILTERS, fits } from './crowd.ts'

let db: TestRowlock
beforeAll(async () => {
  db = await rowlockDatabase('filters')
})
afterAll(() => db.drop())

const snake = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
const inSql = (filter: Record<string, unknown>) =>
  JSON.stringify(Object.fromEntries(Object.entries(filter).map(([name, value]) => [snake(name), value])))
const faultOf = (text: string) => db.value<Row>('select rowlock.filter_fault($1)', [text])

const texts = (name: keyof JobFilter, max: number): [Record<string, unknown>, boolean][] => [
  [{ [name]: 'x'.repeat(max) }, true],
  [{ [name]: 'x'.repeat(max + 1) }, false],
  [{ [name]: '' }, false],
  [{ [name]: null }, false],
  [{ [name]: 7 }, false],
  [{ [name]: {} }, false],
]
const lists = (name: keyof JobFilter, one: string): [Record<string, unknown>, boolean][] => [
  [{ [name]: one }, true],
  [{ [name]: [one] }, true],
  [{ [name]: Array(LIMITS.filterEntries.max).fill(one) }, true],
  [{ [name]: Array(LIMITS.filterEntries.max + 1).fill(one) }, false],
  [{ [name]: [] }, false],
  [{ [name]: [one, null] }, false],
  [{ [name]: [one, [one]] }, false],
]
const spans = (what: string): [Record<string, unknown>, boolean][] => [
  [{ [`${what}Since`]: '2026-01-31T12:00:00Z' }, true],
  [{ [`${what}Until`]: '2026-01-31T12:00:00.123456+02:00' }, true],
  [{ [`${what}Until`]: '2026-01-31' }, true],
  [{ [`${what}Since`]: '2026-01-31', [`${what}Until`]: '2026-02-01' }, true],
  [{ [`${what}Since`]: '2026-02-01', [`${what}Until`]: '2026-01-31' }, false],
  ...['now', 'today', 'infinity', '2026-02-31x', '31.01.2026', '', 0, null, {}].map(
    (value): [Record<string, unknown>, boolean] => [{ [`${what}Since`]: value }, false],
  ),
]
const CASES: [Record<string, unknown>, boolean][] = [
  [{}, true],
  [{ sate: 'x' }, false],
  ...FILTER_STATES.map((state): [Record<string, unknown>, boolean] => [{ state }, true]),
  [{ state: 'Failed' }, false],
  ...lists('state', 'done'),
  ...lists('queue', 'q'),
  ...lists('kind', 'k'),
  ...lists('tenantId', 't'),
  ...lists('cause', 'c'),
  ...texts('queue', LIMITS.nameBytes.max),
  ...texts('kind', LIMITS.nameBytes.max),
  ...texts('tenantId', LIMITS.tenantBytes.max),
  ...texts('cause', LIMITS.causeBytes.max),
  ...texts('dedupeKey', LIMITS.keyBytes.max),
  ...texts('idempotencyKey', LIMITS.keyBytes.max),
  ...texts('error', LIMITS.errorLineBytes.max),
  [{ dedupeKey: ['k'] }, false],
  [{ error: 'x', state: 'dead_letter' }, true],
  [{ error: 'x', state: ['done', 'dead_letter'] }, true],
  [{ error: 'x', state: 'done' }, false],
  [{ metadata: { a: [1, { b: null }] } }, true],
  [{ metadata: {} }, true],
  [{ metadata: { a: 'x'.repeat(LIMITS.metadataBytes.max - 8) } }, true],
  [{ metadata: { a: 'x'.repeat(LIMITS.metadataBytes.max - 7) } }, false],
  ...['x', [], 1, null].map((metadata): [Record<string, unknown>, boolean] => [{ metadata }, false]),
  [{ workerId: '00000000-0000-4000-8000-00000000000A' }, true],
  ...['host', '', 1, null].map((workerId): [Record<string, unknown>, boolean] => [{ workerId }, false]),
  [{ retriedFrom: '9223372036854775807' }, true],
  ...['9223372036854775808', '0', '-1', '1.5', 'x', null].map(
    (retriedFrom): [Record<string, unknown>, boolean] => [{ retriedFrom }, false],
  ),
  ...spans('enqueued'),
  ...spans('available'),
  ...spans('ended'),
  [{ all: true }, true],
  ...[false, 'true', 1, null].map((all): [Record<string, unknown>, boolean] => [{ all }, false]),
]

test.each(CASES.map(([filter, isGood]) => [JSON.stringify(filter).slice(0, 90), filter, isGood] as const))(
  '%s is judged alike by SQL and the client',
  async (_, filter, isGood) => {
    let path: string | undefined
    try {
      filterText(filter as JobFilter)
    } catch (error) {
      path = (error as { path: string }).path
    }
    const fault = await faultOf(inSql(filter))
    expect({ sql: fault === null, client: path === undefined }).toEqual({ sql: isGood, client: isGood })
    if (path !== undefined) expect(fault).toMatchObject({ sqlstate: 'RL001', path: snake(path) })
  },
)

test('SQL knows the names that the client knows', async () => {
  for (const name of FILTER_NAMES) {
    expect((await faultOf(JSON.stringify({ [snake(name)]: { no: 'filter' } })))?.message ?? '').not.toMatch(
      /unknown/,
    )
  }
  expect((await faultOf('{"tenantid": "x"}')).message).toMatch(/unknown filter; did you mean tenant_id\?/)
  expect((await faultOf('{"state": "faild"}')).message).toMatch(/did you mean failed\?/)
  for (const text of ['[]', '"x"', 'null', '1']) expect((await faultOf(text)).sqlstate).toBe('RL001')
  expect((await db.value<Row>('select rowlock.filter_fault(null)')).sqlstate).toBe('RL001')
})

test('an instant without an offset is UTC, whatever the session is set to', async () => {
  await db.sql(`insert into rowlock.waiting (id, available_at, enqueued_at, queue, kind)
    values (9001, now(), '2026-01-31 12:00Z', 'zone', 'k')`)
  const session = await db.session()
  await session.query(`set timezone = 'Asia/Kathmandu'; set datestyle = 'German, DMY'`)
  const found = async (since: string) => {
    const text = `select ids from rowlock.search(jsonb_build_object('queue', 'zone', 'enqueued_since', $1::text))`
    return (await session.query(text, [since])).rows[0].ids
  }
  expect(await found('2026-01-31T12:00:00')).toEqual(['9001'])
  expect(await found('2026-01-31T12:00:00.000001')).toEqual([])
  await db.sql('delete from rowlock.waiting where id = 9001')
})

describe('error_line', () => {
  test.each([
    [{ message: 'order 4711 not found' }, 'order # not found'],
    [{ message: '  \n first of 2\r\nsecond' }, 'first of #'],
    [{ message: 'x'.repeat(300) }, 'x'.repeat(200)],
    [{ message: '' }, ''],
    [{ name: 'Error' }, null],
    ['thrown', null],
    [[1], null],
    [null, null],
  ])('of %j is %j', async (error, line) => {
    expect(await db.value('select rowlock.error_line($1::jsonb)', [JSON.stringify(error)])).toBe(line)
  })
})

describe('a condition that is taken out is missed:', () => {
  const CONDITIONS: Record<string, string> = {
    v_queues: 'queue',
    v_kinds: 'kind',
    v_tenants: 'tenant_id',
    v_causes: 'cause',
    v_dedupe_key: 'dedupe_key',
    v_idempotency_key: 'idempotency_key',
    v_worker_id: 'worker_id',
    v_retried_from: 'retried_from',
    v_enqueued_since: 'enqueued_since',
    v_enqueued_until: 'enqueued_until',
    v_available_since: 'available_since',
    v_available_until: 'available_until',
    v_ended_since: 'ended_since',
    v_ended_until: 'ended_until',
    v_metadata: 'metadata',
    v_error: 'error',
  }
  let definition: string
  let jobs: Row[]
  beforeAll(async () => {
    await crowd(db)
    jobs = await everyJob(db)
    definition = await db.value(`select pg_get_functiondef('rowlock.search'::regproc)`)
  })
  const wrong = async (name?: string) => {
    for (const filter of FILTERS) {
      if (name !== undefined && !(name in filter)) continue
      const found = await db.value('select ids::text[] from rowlock.search($1, p_limit => 1000)', [filter])
      const given = await db.value('select ids::text[] from rowlock.search($1, $2)', [
        filter,
        jobs.map(({ id }) => id),
      ])
      const wanted = jobs.filter((job) => fits(job, filter)).map(({ id }) => id)
      if (found.join() !== wanted.join() || given.join() !== wanted.join()) return filter
    }
    return undefined
  }

  test('none is, as it stands', async () => {
    expect(await wrong()).toBeUndefined()
  })

  test.each(Object.entries(CONDITIONS))('%s', async (variable, name) => {
    const condition = new RegExp(
      `and \\(${variable} is null or (?:l\\.|"rowlock"\\.)[^\\n]+\\)(?= as fits|\\n)`,
    )
    expect(definition).toMatch(condition)
    await db.sql(definition.replace(condition, ''))
    expect(await wrong(name)).toBeDefined()
    await db.sql(definition)
  })

  test.each([
    ['what fits no index is not left out', 'v_waiting or j.phase', 'not v_waiting or j.phase'],
    ['a class of history', '90::smallint', '91::smallint'],
    ['the other end', 'j.id <= v_high', 'j.id < v_high'],
    ['what is done', "v_done or j.state <> 'done'", "j.state <> 'done'"],
    ['the day before', "v_ended_until) + interval '1 day'", 'v_ended_until)'],
  ])('%s', async (_, find, replace) => {
    expect(definition).toContain(find)
    await db.sql(definition.replaceAll(find, replace))
    const short = await db.value(`select ids[1]::text from rowlock.search('{}', null, 100, null, true, 1)`)
    expect((await wrong()) !== undefined || short !== '99').toBe(true)
    await db.sql(definition)
  })
})
