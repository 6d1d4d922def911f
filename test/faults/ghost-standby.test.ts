// A commit with a notice holds a lock of the whole cluster until it is durable. Who enqueues while nobody sleeps sends
// none, and so does not wait for somebody else's commit that hangs on a standby that is gone.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { createRowlock, defineJob } from 'rowlock'
import { startEmbedded } from 'rowlock/embedded'
import { expect, test } from 'vitest'
import { programs } from '../support/majors.ts'
import { until } from '../support/until.ts'

const job = defineJob<number>('job')

test('an enqueue that wakes nobody passes a hanging commit with a notice; one that wakes somebody waits', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'rowlock-ghost-'))
  const settings = {
    wal_level: 'replica',
    max_wal_senders: 4,
    synchronous_standby_names: 'ghost',
    // All but one wait for their own disk, and for no standby.
    synchronous_commit: 'local',
  }
  const server = await startEmbedded({ dataDir, ...programs(), fsync: false, settings })
  const admin = new pg.Client({ connectionString: server.url })
  const hanging = new pg.Client({ connectionString: server.url, application_name: 'hanging' })
  for (const client of [admin, hanging]) client.on('error', () => {})
  const rowlock = createRowlock({ connectionString: server.url, statementTimeoutMs: 20_000 })
  try {
    await rowlock.migrate()
    await admin.connect()
    await admin.query('create table wrote (n integer)')
    await hanging.connect()
    await hanging.query('set synchronous_commit = on')
    // Something of it must reach the disk: a notice alone need not.
    const notified = hanging
      .query(`begin; insert into wrote values (1); notify somewhere; commit`)
      .catch(() => {})
    const isHanging = async () =>
      (
        await admin.query(
          `select from pg_stat_activity where wait_event = 'SyncRep' and application_name = 'hanging'`,
        )
      ).rows.length > 0
    await until('its commit hangs', isHanging)
    const { id } = await rowlock.enqueue(job, 1)
    await rowlock.enqueueMany(Array.from({ length: 1_500 }, (_, n) => job.with(n)))
    expect(await rowlock.job(id)).toMatchObject({ state: 'queued' })
    expect(await isHanging()).toBe(true)
    // The twin: once somebody sleeps, the notice has to wait in line.
    const worker = '00000000-0000-4000-8000-000000000009'
    await admin.query(`select rowlock.register($1, '1 hour', '{}')`, [worker])
    await admin.query(`select rowlock.sleep($1, array['default'], now() + interval '1 hour')`, [worker])
    const waiting = rowlock.enqueue(job, 2)
    await until('it waits for the lock', async () => {
      const { rows } = await admin.query(
        `select from pg_locks where locktype = 'object' and classid = 1262 and not granted`,
      )
      return rows.length > 0
    })
    await admin.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'hanging'`,
    )
    expect(await waiting).toMatchObject({ created: true })
    await notified
  } finally {
    await rowlock.close()
    await hanging.end().catch(() => {})
    await admin.end().catch(() => {})
    await server.stop()
    rmSync(dataDir, { recursive: true, force: true })
  }
})
