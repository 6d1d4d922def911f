// Installing and upgrading: at once, again, beside others, past locks, under the hands of workers.

import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { migrate } from '../../src/engine/migrate.ts'
import type { Migration } from '../../src/engine/migration.ts'
import { RELEASE } from '../../src/engine/release.ts'
import { MIGRATIONS, ROUTINES } from '../../src/engine/sql.generated.ts'
import { createRowlock, defineJob, handle } from '../../src/index.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'
import { catalog, codeOf, type Ground, ground, life, messageOf, note, silent } from '../support/ground.ts'
import { isPooled } from '../support/server.ts'
import { until } from '../support/until.ts'

describe('many at once', () => {
  test('on an empty database all succeed, and each migration is applied once', async () => {
    for (let round = 0; round < 3; round++) {
      const at = await ground(`at once ${round}`)
      const reports = await Promise.all(Array.from({ length: 10 }, () => migrate(at.database())))
      const applied = reports.flatMap((report) => report.applied)
      expect(applied).toEqual(
        MIGRATIONS.map(({ number, name }) => `${String(number).padStart(4, '0')}_${name}`),
      )
      expect(reports.flatMap((report) => report.replaced).sort()).toEqual(
        ROUTINES.map(({ name }) => name).sort(),
      )
      const rows = await at.sql(
        'select number, name, hash, breaking, release from rowlock.migration order by number',
      )
      expect(rows).toEqual(
        MIGRATIONS.map(({ number, name, hash, breaking }) => ({
          number,
          name,
          hash,
          breaking,
          release: RELEASE,
        })),
      )
      // Of this database: other tests hold theirs.
      const left = `select from pg_locks l join pg_database d on d.oid = l.database
                     where l.locktype = 'advisory' and d.datname = current_database()`
      expect(await at.admin(left)).toEqual([])
      await at.drop()
    }
  })

  test('first uses of new queues, kinds and keys meet without an error', async () => {
    const at = await ground('first use')
    const rowlock = at.client()
    await rowlock.migrate()
    const clients = Array.from({ length: 8 }, () => at.client())
    const results = await Promise.all(
      Array.from({ length: 32 }, (_, n) => [
        clients[n % 8]!.enqueue(defineJob<number>('brand-new'), n, { queue: 'brand new', dedupeKey: 'one' }),
        clients[n % 8]!.pause('brand new').then(() => null),
        clients[n % 8]!.setQueue('brand new', { retentionDays: 30 }).then(() => null),
      ]).flat(),
    )
    expect(new Set(results.flatMap((result) => (result ? [result.id] : []))).size).toBe(1)
    await at.drop()
  })
})

describe('a database that has Rowlock', () => {
  let at: Ground
  beforeAll(async () => {
    at = await ground('has it')
    await migrate(at.database())
  })
  afterAll(() => at.drop())

  test('is not changed by migrating again', async () => {
    const before = await catalog(at, 'rowlock')
    expect(await at.client().migrate()).toEqual({ applied: [], replaced: [] })
    expect(await catalog(at, 'rowlock')).toEqual(before)
  })

  test('can have another in another schema: neither sees the other’s jobs, nor is woken for them', async () => {
    const [one, two] = [at.client({ schema: 'one' }), at.client({ schema: 'two' })]
    await Promise.all([one.migrate(), two.migrate()])
    const { id } = await one.enqueue(note, 1)
    expect(await two.job(id)).toBeNull()
    expect(await codeOf(two.cancel(id))).toBe('JOB_NOT_FOUND')
    await life(two)
    expect(await one.job(id)).toMatchObject({ state: 'queued' })
    const [channels] = await at.sql('select one.channel() <> two.channel() as differ')
    expect(channels).toEqual({ differ: true })
  })
})

describe('another release', () => {
  let db: TestRowlock
  beforeAll(async () => {
    db = await rowlockDatabase('releases')
  })
  afterAll(() => db.drop())
  const worker = () => {
    const rowlock = createRowlock({ pool: db.pool })
    return rowlock.worker({ handlers: [handle(note, () => {})], listen: false, logger: silent })
  }
  const startAndStop = async () => {
    const started = worker()
    try {
      await started.start()
    } finally {
      await started.stop()
    }
  }
  async function changed<T>(change: string, undo: string, body: () => Promise<T>): Promise<T> {
    await db.sql(change)
    try {
      return await body()
    } finally {
      await db.sql(undo)
    }
  }
  const later = (breaking: boolean) =>
    `insert into rowlock.migration (number, name, hash, breaking, release)
     values (900, 'later', 'h', ${breaking}, '9.1.0')`
  const noLater = 'delete from rowlock.migration where number = 900'

  test('that is newer and breaks this one stops migrate: it is told which release to use', async () => {
    await changed(later(true), noLater, async () => {
      const error = await migrate(db.database).catch((error) => error)
      expect(error).toMatchObject({ code: 'SCHEMA_NEWER' })
      expect(error.message).toMatch(/900_later of release 9\.1\.0/)
    })
  })

  test('that is newer and breaks nothing lets this release’s processes migrate at their start', async () => {
    await changed(later(false), noLater, async () => {
      expect(await migrate(db.database)).toEqual({ applied: [], replaced: [] })
    })
  })

  test('that is newer and breaks nothing lets this release’s workers start', async () => {
    await changed(later(false), noLater, startAndStop)
  })

  test('that is newer and breaks this one stops its workers at their start', async () => {
    await changed(later(true), noLater, async () => {
      expect(await codeOf(startAndStop())).toBe('SCHEMA_NEWER')
      expect(await messageOf(startAndStop())).toMatch(/release 9\.1\.0 .*upgrade this process/)
    })
  })

  test('whose functions are older is SCHEMA_OUTDATED for workers; functions of a newer release are not', async () => {
    const older = `update rowlock.routine set hash = 'other' where name = 'claim'`
    const back = () =>
      db.sql('update rowlock.routine set hash = $1, release = $2 where name = $3', [
        ROUTINES.find(({ name }) => name === 'claim')!.hash,
        RELEASE,
        'claim',
      ])
    await db.sql(older)
    expect(await codeOf(startAndStop())).toBe('SCHEMA_OUTDATED')
    expect(await messageOf(startAndStop())).toMatch(/function claim is older .*rowlock migrate/)
    await db.sql(`update rowlock.routine set release = '9.1.0' where name = 'claim'`)
    await startAndStop()
    await back()
  })

  test('that is older is SCHEMA_OUTDATED for workers, until somebody migrates', async () => {
    const last = MIGRATIONS.at(-1)!
    await changed(
      `create table kept as select * from rowlock.migration where number = ${last.number};
       delete from rowlock.migration where number = ${last.number}`,
      'insert into rowlock.migration select * from kept; drop table kept',
      async () => {
        expect(await codeOf(startAndStop())).toBe('SCHEMA_OUTDATED')
        expect(await messageOf(startAndStop())).toMatch(/lacks migration .*rowlock migrate/)
      },
    )
    await startAndStop()
  })

  test('that was edited after it was applied is MIGRATION_CHANGED', async () => {
    await changed(
      `update rowlock.migration set hash = 'x' || hash where number = 1`,
      `update rowlock.migration set hash = substr(hash, 2) where number = 1`,
      async () => expect(await codeOf(migrate(db.database))).toBe('MIGRATION_CHANGED'),
    )
  })

  test('that is newer keeps its functions when an older process migrates', async () => {
    const hash = await db.value(`select hash from rowlock.routine where name = 'store'`)
    const mark = (release: string) =>
      `update rowlock.routine set hash = 'another', release = '${release}' where name = 'store'`
    const undo = `update rowlock.routine set hash = '${hash}', release = '${RELEASE}' where name = 'store'`
    for (const newer of ['0.2.1', '0.10.0', '1.0.0', '10.0.0-beta.1']) {
      await changed(mark(newer), undo, async () => {
        expect([newer, (await migrate(db.database)).replaced]).toEqual([newer, []])
      })
    }
    for (const older of ['0.0.9', '0.1.0', RELEASE, '']) {
      await changed(mark(older), undo, async () => {
        expect([older, (await migrate(db.database)).replaced]).toEqual([older, ['store']])
      })
    }
  })

  test('a database without Rowlock is SCHEMA_MISSING for everything but migrate', async () => {
    const at = await ground('missing')
    const rowlock = at.client()
    for (const work of [
      () => rowlock.enqueue(note, 1),
      () => rowlock.enqueueMany(Array.from({ length: 1_500 }, () => note.with(1))),
      () => rowlock.cancel('1'),
      () => rowlock.job('1'),
      () => rowlock.pause('default'),
      () => rowlock.worker({ handlers: [handle(note, () => {})], listen: false, logger: silent }).start(),
    ]) {
      expect([String(work), await codeOf(work())]).toEqual([String(work), 'SCHEMA_MISSING'])
    }
    expect(await messageOf(rowlock.enqueue(note, 1))).toMatch(/run `rowlock migrate`/)
    await at.drop()
  })
})

test('a table that somebody holds is waited for, in short turns that let others pass', async () => {
  const at = await ground('locks')
  await migrate(at.database())
  const adds: Migration = {
    number: 900,
    name: 'adds',
    hash: 'h',
    breaking: false,
    transaction: true,
    sql: 'alter table rowlock.waiting add column try integer;',
  }
  const holder = new pg.Client({ connectionString: at.direct })
  holder.on('error', () => {})
  await holder.connect()
  await holder.query('begin; lock table rowlock.waiting in access share mode')
  const lines: string[] = []
  const work = migrate(at.database(), {
    migrations: [...MIGRATIONS, adds],
    onProgress: (line) => lines.push(line),
  })
  const rowlock = at.client()
  // While it queues for its lock everybody queues behind it; between two turns they get through.
  await until('it has given way once', () => lines.includes('waiting for a lock that somebody else holds'))
  await rowlock.enqueue(note, 1)
  await holder.query('commit')
  expect((await work).applied).toEqual(['0900_adds'])
  await holder.end()
  await at.drop()
})

test('every function is replaced under the hands of workers and producers, and none of them notices', async () => {
  const at = await ground('live')
  const rowlock = at.client()
  await rowlock.migrate()
  const warnings: [string, object][] = []
  const hear = (fields: object, message: string) => void warnings.push([message, fields])
  const seen = new Set<unknown>()
  const worker = rowlock.worker({
    handlers: [handle(note, ({ input }) => void seen.add(input))],
    poll: 50,
    listen: !isPooled(),
    logger: { ...silent, warn: hear, error: hear },
  })
  await worker.start()
  let enqueued = 0
  let isDone = false
  const producer = async () => {
    while (!isDone) {
      await rowlock.enqueue(note, enqueued++, { dedupeKey: `k${enqueued % 7}` })
      await rowlock.enqueueMany([note.with(enqueued++), note.with(enqueued++)])
    }
  }
  const producing = Promise.all([producer(), producer()])
  for (let round = 0; round < 2; round++) {
    const routines = ROUTINES.map((routine) => ({ ...routine, hash: `round ${round}` }))
    const reports = await Promise.all([1, 2].map(() => migrate(at.database(), { routines })))
    expect(reports.flatMap(({ replaced }) => replaced)).toHaveLength(ROUTINES.length)
  }
  isDone = true
  await producing
  const live = 'select from rowlock.waiting union all select from rowlock.running'
  await until('all is done', async () => (await at.sql(live)).length === 0)
  await worker.stop()
  // A proof that takes too long on a busy machine is no matter of functions.
  expect(warnings.filter(([message]) => message !== 'notices are not heard: polling')).toEqual([])
  expect(seen.size).toBeGreaterThan(20)
  await at.drop()
}, 300_000)

test('all tables can be published for logical replication: only history, which never changes, has no key', async () => {
  const at = await ground('published')
  await migrate(at.database())
  await at.admin('create publication everything for all tables')
  const rowlock = at.client()
  await rowlock.setQueue('default', { retentionDays: 1 })
  await life(rowlock)
  expect(
    await at.sql(
      `select c.relname::text as name from pg_class c
        where c.relnamespace = 'rowlock'::regnamespace and c.relkind in ('r', 'p')
          and not exists (select from pg_index i where i.indrelid = c.oid and i.indisprimary)
          and c.relname !~ '^(finished|attempt)'`,
    ),
  ).toEqual([])
  await at.drop()
})
