// A server that is a standby, as an address leads to one after a failover: what is refused, and that it is no end.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type EmbeddedServer, startEmbedded } from '../../src/embedded/index.ts'
import { createRowlock, type Rowlock } from '../../src/index.ts'
import { codeOf, messageOf, note } from '../support/ground.ts'
import { programs } from '../support/majors.ts'
import { until } from '../support/until.ts'

let folder: string
let server: EmbeddedServer
let rowlock: Rowlock
let pool: pg.Pool
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'rowlock-standby-'))
  const options = { dataDir: folder, ...programs(), fsync: false }
  server = await startEmbedded(options)
  const before = createRowlock({ connectionString: server.url })
  await before.migrate()
  await before.enqueue(note, 'from before')
  await before.close()
  await server.stop()
  writeFileSync(join(folder, 'data/standby.signal'), '')
  server = await startEmbedded(options)
  pool = new pg.Pool({ connectionString: server.url, max: 1 })
  rowlock = createRowlock({ pool })
})
afterAll(async () => {
  await rowlock?.close()
  await pool?.end()
  await server?.stop()
  rmSync(folder, { recursive: true, force: true })
})

const many = () => rowlock.enqueueMany(Array.from({ length: 1_001 }, (_, n) => note.with(n)))
const pid = async () => (await pool.query('select pg_backend_pid() as pid')).rows[0].pid

test('a standby shows its jobs', async () => {
  expect(await rowlock.job('1')).toMatchObject({ state: 'queued', input: 'from before' })
})

test('a standby takes no jobs, alone or in a transaction of many, and says what it is', async () => {
  expect(await codeOf(rowlock.enqueue(note, 1))).toBe('DATABASE_UNAVAILABLE')
  expect(await codeOf(many())).toBe('DATABASE_UNAVAILABLE')
  expect(await messageOf(many())).toMatch(/takes no writes here .* is a standby/s)
})

test('a connection to a standby is not used again: the next one may lead to the new primary', async () => {
  for (const refused of [() => rowlock.enqueue(note, 1), many]) {
    const before = await pid()
    expect(await codeOf(refused())).toBe('DATABASE_UNAVAILABLE')
    expect(await pid()).not.toBe(before)
  }
})

test('once it is promoted, the same client goes on', async () => {
  await pool.query('select pg_promote()')
  await until(
    'it is promoted',
    async () => !(await pool.query('select pg_is_in_recovery() as is')).rows[0].is,
  )
  expect(await many()).toHaveLength(1_001)
  expect(await rowlock.enqueue(note, 1)).toMatchObject({ created: true })
})
