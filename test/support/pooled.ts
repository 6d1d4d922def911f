// Which tests a run through PgBouncer leaves out (ROWLOCK_TEST_POOLER=1, see global.ts), and why: all that is said of a
// transaction pooler's limits is said here. Loaded before each file of such a run.

import { beforeEach } from 'vitest'

/** LISTEN is of a session: what is said of a worker that hears cannot be seen. Polling is seen everywhere else. */
const HEARS = 'it is about a worker that hears notices, and through the pooler none is heard'
/** `pg_stat_activity` shows the sessions of the pooler, which outlive those of its clients and are shared. */
const SESSIONS = "it counts or ends sessions of the server, which are the pooler's here"
/** A handler holds a connection for as long as its transaction is open, and another must be left to beat and to mark. */
const OPEN = 'its handlers have more transactions open at once than the pooler has connections'

/** `file › name`, or a whole file. */
export const NOT_POOLED: Readonly<Record<string, string>> = {
  'test/client/life.test.ts › close › ends the connections the client made, twice as well as once, and every call after it is CLOSED':
    SESSIONS,
  'test/engine/roles.test.ts › a worker › claims, listens, reads large inputs, works in transactions, fails, snoozes, reaps and tidies':
    HEARS,
  'test/worker/cancel.test.ts › a worker that listens notices at once, with the reason': HEARS,
  'test/worker/concurrency.test.ts › a worker › has a connection for each of its handlers in transactions, when there are more':
    OPEN,
  'test/worker/concurrency.test.ts › a worker › that listens takes it up at once, however rarely it beats':
    HEARS,
  'test/worker/connections.test.ts': SESSIONS,
  'test/worker/loops.test.ts › the listener › starts and stops': HEARS,
  'test/worker/loops.test.ts › the listener › stops before it started': HEARS,
  'test/worker/pool.test.ts › a listener of an event that throws stops nothing': HEARS,
  'test/worker/pool.test.ts › a role with short timeouts and a strict isolation is worked for all the same':
    HEARS,
  'test/worker/pool.test.ts › sessions that the server ends at any moment end no process and lose no job':
    SESSIONS,
  'test/worker/pool.test.ts › transactions of handlers run in the pool of the user, and give its connections back':
    OPEN,
  'test/worker/session.test.ts › what a handler throws says nothing of its connection, whatever its words':
    SESSIONS,
  'test/worker/start.test.ts › a start on a database without Rowlock is refused, and leaves nothing behind':
    SESSIONS,
  'test/worker/start.test.ts › a start that no wait would mend is refused › %s':
    'it is made in test/pooler/let-in.test.ts: PgBouncer asks the very database who may come in, and one refusal a while',
  'test/worker/stop.test.ts › a hundred workers that start and stop leave no listener, session or row behind':
    SESSIONS,
  'test/worker/stop.test.ts › afterwards › no byte is sent and no session is left': SESSIONS,
  'test/worker/stop.test.ts › in whatever state it is › while it starts': SESSIONS,
  'test/worker/transaction.test.ts › a decision that is returned commits with the writes': OPEN,
  'test/worker/transaction.test.ts › a reaper that sweeps without a pause takes no failure or timeout for a session that died':
    OPEN,
  'test/worker/wake.test.ts': HEARS,
}

beforeEach(({ task, skip }) => {
  const file = task.file.name
  const names: string[] = []
  for (let at: { name: string; suite?: typeof at } | undefined = task; at !== undefined; at = at.suite) {
    names.unshift(at.name)
  }
  const full = `${file} › ${names.join(' › ')}`
  const above = `${file} › ${names.slice(0, -1).join(' › ')} › %s`
  const why = NOT_POOLED[file] ?? NOT_POOLED[full] ?? NOT_POOLED[above]
  if (why !== undefined) skip(why)
})
