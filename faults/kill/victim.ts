// A process that runs an errand and is killed on the way: puts jobs in, works, or gives back what others lost. It says
// over IPC what it asks for and what it was answered.

import pg from 'pg'
import { Database } from '../../src/engine/database.ts'
import { createRowlock, type Enqueued, isRowlockError } from '../../src/index.ts'
import { Maintenance } from '../../src/worker/maintenance.ts'
import { jobs } from '../jobs.ts'
import { openLedger } from '../ledger.ts'
import { counts, reached, watch } from './executor.ts'
import { handlersOf } from './handlers.ts'
import type { Order } from './points.ts'

const order = JSON.parse(process.env.FAULTS_VICTIM!) as Order
const { url, errand, queue } = order
const say = (message: object) => process.send!(message)
process.on('disconnect', () => process.exit(99))
process.on('unhandledRejection', (error) => say({ mishap: `unhandled rejection: ${String(error)}` }))
watch(order)

const rowlock = createRowlock({ connectionString: url })
if (errand === 'produce') await produce()
else if (errand === 'work') await work()
else await maintain()
await rowlock.close()
say({ counts: [...counts] })
process.removeAllListeners('disconnect')
process.disconnect()

/** One job, some, very many, and one beside a row of the caller's. */
async function produce(): Promise<void> {
  const ask = async (
    refs: readonly string[],
    inTransaction: boolean,
    call: () => Promise<readonly Enqueued[]>,
  ) => {
    say({ asks: refs, inTransaction })
    const answers = await call().catch((error) => {
      // Nothing was sent: it is sure not to be there. Everything else is unknown.
      if (isRowlockError(error, 'DATABASE_UNAVAILABLE')) say({ failed: refs })
      return undefined
    })
    if (answers === undefined) return
    say({ answered: refs.map((ref, n) => ({ ref, ...answers[n]! })) })
  }
  const task = (n: string) => ({ ref: `${queue} ${n}`, luck: 0 })
  const keyed = task('keyed')
  await ask([keyed.ref], false, async () => [
    await rowlock.enqueue(jobs.quick, keyed, { queue, dedupeKey: 'only' }),
  ])
  const some = ['a', 'b', 'c'].map(task)
  await ask(
    some.map(({ ref }) => ref),
    false,
    () => rowlock.enqueueMany(some.map((one) => jobs.quick.with(one, { queue }))),
  )
  const many = Array.from({ length: 1_020 }, (_, n) => task(`of many ${n}`))
  await ask(
    many.map(({ ref }) => ref),
    false,
    () => rowlock.enqueueMany(many.map((one) => jobs.quick.with(one, { queue: `${queue}-many` }))),
  )
  const own = task('beside a row')
  const client = new pg.Client({ connectionString: url, application_name: 'victim' })
  client.on('error', () => {})
  await ask([own.ref], true, async () => {
    await client.connect()
    await client.query('begin')
    await client.query('insert into faults.asked (ref) values ($1)', [own.ref])
    const answer = await rowlock.in(client).enqueue(jobs.quick, own, { queue })
    await client.query('commit')
    return [answer]
  })
  await client.end().catch(() => {})
}

/** Works until all but the slow job have ended, and then shuts down. */
async function work(): Promise<void> {
  const ledger = openLedger(url)
  const worker = rowlock.worker({
    lease: 2_000,
    poll: 100,
    maintenance: 200,
    listen: false,
    queues: { [queue]: { concurrency: 4, prefetch: 4 } },
    handlers: handlersOf(ledger, (label) => reached(label, order), 60_000),
    logger: { debug() {}, info() {}, warn() {}, error: (fields, message) => say({ log: message, fields }) },
  })
  await worker.start()
  const book = new pg.Pool({ connectionString: url, application_name: 'ledger', max: 1 })
  book.on('error', () => {})
  const isBusy = `select count(*)::integer as left from rowlock.job
                   where queue = $1 and kind <> 'slow' and state in ('queued', 'retryable', 'running')`
  const until = performance.now() + 20_000
  const beats = () => counts.get('heartbeat') ?? 0
  while (performance.now() < until) {
    const { rows } = await book.query(isBusy, [queue]).catch(() => ({ rows: [{ left: 1 }] }))
    if (rows[0]?.left === 0 && beats() >= 2) break
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  await worker.stop({ grace: 50 })
  await book.end()
  await ledger.close()
}

/** What a worker does on duty for all, and nothing else, until it has been done twice. */
async function maintain(): Promise<void> {
  const database = new Database({ connectionString: url, applicationName: 'rowlock worker' })
  let isWhole = true
  const maintenance = new Maintenance({
    database,
    everyMs: 60_000,
    timeoutMs: 10_000,
    logger: { debug() {}, info() {}, warn() {}, error() {} },
    isPooled: () => false,
    onReaped: () => {},
    onError: () => {
      isWhole = false
    },
  })
  const until = performance.now() + 20_000
  for (let done = 0; done < 2 && performance.now() < until; ) {
    isWhole = true
    await maintenance.runOnce().catch(() => {
      isWhole = false
    })
    if (isWhole) done++
    else await new Promise((resolve) => setTimeout(resolve, 20))
  }
  await maintenance.stop()
  await database.close()
}
