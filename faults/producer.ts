// Producers: they enqueue one by one, in bulk, with keys, in transactions that commit or not, and log what they know.

import pg from 'pg'
import type { AnyRequest } from '../src/ground/job.ts'
import { isRowlockError, type Rowlock } from '../src/index.ts'
import type { Answer, Call } from './history.ts'
import { jobs, type Task } from './jobs.ts'
import { type Dice, diceOf } from './random.ts'

/** What producers share. */
export interface ProducerOptions {
  readonly rowlock: Rowlock
  /** The producers' way to the database. */
  readonly url: string
  readonly seed: number
  readonly calls: Call[]
  readonly recent: string[]
  /** Unit: ms between the calls of one producer. */
  readonly pauseMs: number
  /** How many jobs wait. Producers hold back at a few hundred: what is judged is that all end in time, not how many. */
  waiting(): Promise<number>
}

const PRODUCERS = 3
const RECENT = 400
const MOST_WAITING = 200
const COUNT_EVERY_MS = 300
const STATEMENT_MS = 5_000

/** How often each kind is enqueued. */
const SHARES: readonly (readonly [keyof typeof jobs, number])[] = [
  ['quick', 40],
  ['slow', 10],
  ['flaky', 20],
  ['hopeless', 3],
  ['book', 20],
  ['later', 8],
  ['late', 2],
  ['deaf', 0.3],
]

/** Begin to produce; what comes back ends it, when the calls that are in flight have been answered. */
export function startProducers(options: ProducerOptions): () => Promise<void> {
  const pool = new pg.Pool({
    connectionString: options.url,
    max: PRODUCERS,
    application_name: 'producer',
    connectionTimeoutMillis: STATEMENT_MS,
  })
  pool.on('error', () => {})
  // While one is checked out the pool does not listen.
  pool.on('connect', (client) => client.on('error', () => {}))
  const state = { isOver: false, isFull: false }
  const all = Array.from({ length: PRODUCERS }, (_, n) => produce(n, options, pool, state))
  const counted = holdBack(options, state)
  return async () => {
    state.isOver = true
    await Promise.all([...all, counted])
    await pool.end()
  }
}

interface State {
  isOver: boolean
  isFull: boolean
}

async function holdBack({ waiting }: ProducerOptions, state: State): Promise<void> {
  while (!state.isOver) {
    state.isFull = (await waiting()) > MOST_WAITING
    await new Promise((resolve) => setTimeout(resolve, COUNT_EVERY_MS))
  }
}

async function produce(n: number, options: ProducerOptions, pool: pg.Pool, state: State): Promise<void> {
  const dice = diceOf(options.seed + 1_000 + n)
  for (let turn = 0; !state.isOver; turn++) {
    const name = `p${n}-${turn}`
    const way = dice.roll()
    const call = way < 0.6 ? single : way < 0.75 ? bulk : inTransaction
    if (!state.isFull) await call(name, dice, options, pool)
    await new Promise((resolve) => setTimeout(resolve, dice.between(0, 2 * options.pauseMs)))
  }
}

function request(ref: string, dice: Dice): AnyRequest {
  const [kind] = dice.weigh(SHARES, ([, share]) => share)
  const task: Task = { ref, luck: dice.roll() }
  return jobs[kind].with(task, {
    ...(dice.chance(0.2) && { dedupeKey: `key-${dice.whole(20)}` }),
    ...(dice.chance(0.1) && { delay: Math.round(dice.between(1, 500)) }),
    ...(dice.chance(0.1) && { priority: dice.whole(21) - 10 }),
    ...(dice.chance(0.05) && { expiresIn: Math.round(dice.between(100, 2_000)) }),
  })
}

/** What a failed call says of itself: only an answer that never came leaves it open. */
export function answerTo(error: unknown): Answer {
  return isRowlockError(error, 'OUTCOME_UNKNOWN') ? 'unknown' : 'failed'
}

async function single(ref: string, dice: Dice, { rowlock, calls, recent }: ProducerOptions): Promise<void> {
  const { definition, input, options } = request(ref, dice)
  try {
    const { id, created } = await rowlock.enqueue(definition, input, options)
    calls.push({ ref, answer: 'ok', id, created, inTransaction: false })
    remember(recent, id)
  } catch (error) {
    calls.push({ ref, answer: answerTo(error), inTransaction: false })
  }
}

async function bulk(name: string, dice: Dice, { rowlock, calls, recent }: ProducerOptions): Promise<void> {
  const requests = Array.from({ length: 2 + dice.whole(8) }, (_, n) => request(`${name}.${n}`, dice))
  const refs = requests.map(({ input }) => (input as Task).ref)
  try {
    const answers = await rowlock.enqueueMany(requests)
    for (const [n, { id, created }] of answers.entries()) {
      calls.push({ ref: refs[n]!, answer: 'ok', id, created, inTransaction: false })
      remember(recent, id)
    }
  } catch (error) {
    for (const ref of refs) calls.push({ ref, answer: answerTo(error), inTransaction: false })
  }
}

async function inTransaction(
  ref: string,
  dice: Dice,
  { rowlock, calls, recent }: ProducerOptions,
  pool: pg.Pool,
): Promise<void> {
  // Without a key: the job is this call's own, and its business row stands beside it or not at all.
  const { definition, input } = request(ref, dice)
  const isRolledBack = dice.chance(0.25)
  let isCommitting = false
  let client: pg.PoolClient | undefined
  let failure: Error | undefined
  try {
    client = await pool.connect()
    await within(client.query('begin'))
    await within(client.query('insert into faults.asked (ref) values ($1)', [ref]))
    const { id, created } = await within(rowlock.in(client).enqueue(definition, input))
    isCommitting = !isRolledBack
    const { command } = await within(client.query(isRolledBack ? 'rollback' : 'commit'))
    const answer = command === 'COMMIT' ? 'ok' : 'failed'
    calls.push({ ref, answer, id, created, inTransaction: true })
    if (answer === 'ok') remember(recent, id)
  } catch (error) {
    failure = error as Error
    // A server that refuses a commit says so, and goes on; what else fails there leaves it open.
    const isRefused = (error as { severity?: string }).severity === 'ERROR'
    calls.push({ ref, answer: isCommitting && !isRefused ? 'unknown' : 'failed', inTransaction: true })
  }
  client?.release(failure)
}

/** A link may swallow the answer: it is given up, and the session with it. */
async function within<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('no answer in time')), STATEMENT_MS)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}

function remember(recent: string[], id: string): void {
  recent.push(id)
  if (recent.length > RECENT) recent.shift()
}
