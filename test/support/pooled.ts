// Which tests a run through PgBouncer leaves out (ROWLOCK_TEST_POOLER=1, see global.ts), and why: all that is said of a
// transaction pooler's limits is said here. Loaded before each file of such a run.

import { beforeEach } from 'vitest'

/** LISTEN is of a session: what is said of a worker that hears cannot be seen. Polling is seen everywhere else. */
const HEARS = 'it is about a worker that hears notices, and through the pooler none is heard'
/** `pg_stat_activity` shows the sessions of the pooler, which outlive those of its clients and are shared. */
const SESSIONS = 'it counts or ends sessions of the server, and these are of the pooler'
/** A handler holds a connection for as long as its transaction is open; another must be left to beat and to mark. */
const OPEN = 'its handlers have more transactions open at once than the pooler has connections'
/** PgBouncer asks the very database who may come in, and tells a refusal of the server once in a while. */
const LET_IN = 'it is tried in test/pooler/let-in.test.ts, as far as the pooler tells who is not let in'

/** Each `file › name`, or a whole file, without `test/` and `.test.ts`. */
const BY_REASON: readonly (readonly [string, readonly string[]])[] = [
  [
    HEARS,
    [
      'engine/roles › a worker › claims, listens, reads large inputs, works in transactions, fails, snoozes, ' +
        'reaps and tidies',
      'worker/cancel › a worker that listens notices at once, with the reason',
      'worker/concurrency › a worker › that listens takes it up at once, however rarely it beats',
      'worker/idle › an idle worker that listens asks no more',
      'worker/limits › a limit on running jobs › of 3 is used and never exceeded by four workers, who look only ' +
        'when a job ends',
      'worker/limits › a limit on running jobs › tells of a free place those who handle what waits, where the one ' +
        'that made it does not',
      'worker/limits › a rate › holds over workers of which one is another in the middle, and what waits goes on by ' +
        'itself',
      'worker/loops › the listener › starts and stops',
      'worker/loops › the listener › stops before it started',
      'worker/pool › a listener of an event that throws stops nothing',
      'worker/pool › a role with short timeouts and a strict isolation is worked for all the same',
      'worker/wake',
    ],
  ],
  [
    SESSIONS,
    [
      'client/life › close › ends the connections the client made, twice as well as once, and every call ' +
        'after it is CLOSED',
      'worker/connections',
      'worker/pool › sessions that the server ends at any moment end no process and lose no job',
      'worker/session › what a handler throws says nothing of its connection, whatever its words',
      'worker/start › a start on a database without Rowlock is refused, and leaves nothing behind',
      'worker/stop › a hundred workers that start and stop leave no listener, session or row behind',
      'worker/stop › afterwards › no byte is sent and no session is left',
      'worker/stop › in whatever state it is › while it starts',
    ],
  ],
  [
    OPEN,
    [
      'worker/concurrency › a worker › has a connection for each of its handlers in transactions, when there are more',
      'worker/pool › transactions of handlers run in the pool of the user, and give its connections back',
      'worker/transaction › a decision that is returned commits with the writes',
      'worker/transaction › a reaper that sweeps without a pause takes no failure or timeout for a session that died',
    ],
  ],
  [LET_IN, ['worker/start › a start that no wait would mend is refused › %s']],
]

/** `test/….test.ts › name`, or the file alone, and why. */
export const NOT_POOLED: Readonly<Record<string, string>> = Object.fromEntries(
  BY_REASON.flatMap(([why, names]) =>
    names.map((full) => {
      const [file, ...name] = full.split(' › ')
      return [[`test/${file}.test.ts`, ...name].join(' › '), why]
    }),
  ),
)

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
