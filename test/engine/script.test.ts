// The installation as a script, and as a copy by pg_dump: the same schema as migrate makes.

import { execFileSync, spawnSync } from 'node:child_process'
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { migrate } from '../../src/engine/migrate.ts'
import { migrationScript } from '../../src/engine/migration-script.ts'
import { quoteIdentifier } from '../../src/engine/schema.ts'
import { catalog, ground, life, note } from '../support/ground.ts'

describe('the script', () => {
  const run = async (url: string, text: string) => {
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    await client.query(text).finally(() => client.end())
  }

  test.each(['rowlock', `it's "a" $rowlock$ \\ rowlock.b`])(
    'makes the same schema %s as migrate does',
    async (schema) => {
      const [by, with_] = [await ground('by script'), await ground('by migrate')]
      await run(by.url, migrationScript(schema))
      await migrate(with_.database({ schema }))
      const clean = (all: unknown) => JSON.parse(JSON.stringify(all).replaceAll(/owner_[a-z0-9_]+/g, 'OWNER'))
      const found = clean(await catalog(by, schema))
      expect(found.objects.length).toBeGreaterThan(200)
      expect(found).toEqual(clean(await catalog(with_, schema)))
      expect(await by.client({ schema }).migrate()).toEqual({ applied: [], replaced: [] })
      await life(by.client({ schema }))
      await by.drop()
      await with_.drop()
    },
  )

  test('is read by psql as it is meant, also where strings are of old', async () => {
    if (spawnSync('psql', ['--version']).error) return console.info('not run: psql is not installed')
    const at = await ground('psql')
    const schema = `it's "a" :b \\ $rowlock$`
    const url = await at.role('old', ['set standard_conforming_strings = off'])
    await at.admin(`create schema ${quoteIdentifier(schema)} authorization ${new URL(url).username}`)
    execFileSync('psql', ['-X', '-q', '-v', 'ON_ERROR_STOP=1', url], {
      input: migrationScript(schema),
      stdio: ['pipe', 'ignore', 'pipe'],
    })
    await life(at.client({ url, schema }))
    await at.drop()
  })

  test('is undone as a whole when a part of it fails', async () => {
    const at = await ground('script fails')
    await at.sql('create schema rowlock; create table rowlock.finished ()')
    await expect(run(at.url, migrationScript('rowlock'))).rejects.toMatchObject({ code: '42P07' })
    expect(
      await at.sql(`select relname::text as name from pg_class where relnamespace = 'rowlock'::regnamespace`),
    ).toEqual([{ name: 'finished' }])
    await at.drop()
  })
})

test('a copy by pg_dump works, and migrates, under its own database', async () => {
  const [from, to] = [await ground('dumped'), await ground('restored')]
  const [{ server }] = (await from.sql(
    `select current_setting('server_version_num')::integer / 10000 as server`,
  )) as [{ server: number }]
  const version = spawnSync('pg_dump', ['--version'], { encoding: 'utf8' })
  const major = Number(/(\d+)\.\d+/.exec(version.stdout ?? '')?.[1] ?? 0)
  if (major < server) {
    console.info(`not run: pg_dump is ${major || 'not installed'}, the server is ${server}`)
  } else {
    const rowlock = from.client()
    await rowlock.migrate()
    const { id } = await rowlock.enqueue(note, { kept: true }, { delay: '1h', dedupeKey: 'k' })
    const dump = execFileSync('pg_dump', ['--no-owner', from.url], {
      encoding: 'utf8',
      maxBuffer: 100_000_000,
    })
    execFileSync('psql', ['-X', '-q', '-v', 'ON_ERROR_STOP=1', to.url], {
      input: dump,
      stdio: ['pipe', 'ignore', 'pipe'],
    })
    const copy = to.client()
    expect(await copy.migrate()).toEqual({ applied: [], replaced: [] })
    expect(await copy.job(id)).toMatchObject({ input: { kept: true }, state: 'queued' })
    expect(await copy.enqueue(note, 1, { dedupeKey: 'k' })).toEqual({ id, created: false })
    await life(copy)
    expect(await to.sql(`select id > ${id} as rises, created from rowlock.enqueue('note')`)).toEqual([
      { rises: true, created: true },
    ])
  }
  await from.drop()
  await to.drop()
})
