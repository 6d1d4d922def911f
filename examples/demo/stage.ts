// Puts everything up: the embedded PostgreSQL with a database of this run, the receivers, the shop, two workers. And
// takes it down again, in reverse.

import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { createRowlock, type Rowlock } from 'rowlock'
import { type EmbeddedServer, startEmbedded } from 'rowlock/embedded'
import { Crew } from './crew.ts'
import { ErpReceiver } from './erp-receiver.ts'
import { readEvents } from './events.ts'
import { findPictures } from './pictures.ts'
import { SHOP_TABLES, Shop } from './shop.ts'
import { SmtpSink } from './smtp-sink.ts'
import { isAlive, openStateFolder, type StateFolder } from './state-folder.ts'

export interface Stage {
  readonly server: EmbeddedServer
  readonly pool: pg.Pool
  readonly rowlock: Rowlock
  readonly smtp: SmtpSink
  readonly erp: ErpReceiver
  readonly shop: Shop
  readonly crew: Crew
  readonly state: StateFolder
  readonly pictureFolder: string
}

export interface StageOptions {
  readonly pictures: string | undefined
  readonly onEvent: (text: string) => void
  /**
   * What must be done at the end, last one first. Filled as things go up, so that a failed start is taken down
   * too.
   */
  readonly teardown: (() => unknown)[]
}

const WORKERS = 2

export async function setStage({ pictures, onEvent, teardown }: StageOptions): Promise<Stage> {
  const state = openStateFolder()
  teardown.push(() => state.clear())
  const inputFolder = join(state.run, 'input')
  const pictureFolder = join(state.run, 'pictures')
  mkdirSync(inputFolder)
  mkdirSync(pictureFolder)
  const found = await findPictures(pictures, inputFolder)

  const server = await startEmbedded({
    dataDir: join(state.path, 'postgres'),
    from: new URL('../../dev/postgres/', import.meta.url),
    settings: { max_connections: 200 },
    log: onEvent,
  })
  teardown.push(() => server.stop())
  const connectionString = await freshDatabase(server.url, teardown)
  const pool = new pg.Pool({ connectionString, max: 4, application_name: 'demo' })
  pool.on('error', () => {})
  teardown.push(() => pool.end())
  await pool.query(SHOP_TABLES)
  const rowlock = createRowlock({ connectionString })
  teardown.push(() => rowlock.close())
  await rowlock.migrate()
  onEvent(`PostgreSQL ${server.version} runs on port ${server.port}; the schema is migrated`)

  const secret = randomBytes(24).toString('hex')
  const smtp = new SmtpSink()
  const smtpPort = await smtp.start()
  teardown.push(() => smtp.stop())
  const erp = new ErpReceiver(secret)
  await erp.start()
  teardown.push(() => erp.stop())

  const events = readEvents()
  const shop = new Shop(pool, rowlock, events, found.files)
  const crew = new Crew({
    config: { connectionString, smtpPort, erpUrl: erp.url, secret, pictureFolder },
    onEvent,
  })
  teardown.push(() => crew.stop())
  await Promise.all(Array.from({ length: WORKERS }, () => crew.hire()))
  const pictureCount = found.files.length === 1 ? 'one picture' : `${found.files.length} pictures`
  onEvent(`${WORKERS} workers run; ${events.length} records and ${pictureCount} (${found.from}) are at hand`)
  return { server, pool, rowlock, smtp, erp, shop, crew, state, pictureFolder }
}

/** A database of this run alone; those of runs that were killed are dropped. */
async function freshDatabase(adminUrl: string, teardown: (() => unknown)[]): Promise<string> {
  const admin = async (work: (client: pg.Client) => Promise<unknown>) => {
    const client = new pg.Client({ connectionString: adminUrl })
    await client.connect()
    await work(client).finally(() => client.end())
  }
  const name = `rowlock_demo_${process.pid}`
  const drop = (client: pg.Client, database: string) =>
    client.query(`drop database if exists ${pg.escapeIdentifier(database)} with (force)`)
  await admin(async (client) => {
    const { rows } = await client.query<{ datname: string }>(
      "select datname from pg_database where datname like 'rowlock\\_demo\\_%'",
    )
    for (const { datname } of rows) {
      const pid = Number(datname.split('_').at(-1))
      if (pid === process.pid || !isAlive(pid)) await drop(client, datname)
    }
    await client.query(`create database ${pg.escapeIdentifier(name)}`)
  })
  teardown.push(() => admin((client) => drop(client, name)))
  const url = new URL(adminUrl)
  url.pathname = `/${name}`
  return url.href
}
