// D and E: connections, listeners, pools, and poolers between them and the server.

import { tried } from './case.ts'

const LOOPS = 'worker/pool › a loop that fails comes back by itself, and the others go on › %s'
const POOLER = 'pooler/pgbouncer › through PgBouncer'
const ENDED = 'worker/pool › sessions that the server ends at any moment end no process and lose no job'

export const CONNECTIONS = [
  tried(
    'D01',
    'After a restart of the server a worker is woken as before, by one listener.',
    'faults/server-restart › after each of several restarts a worker is woken again, by one listener',
  ),
  tried(
    'D02',
    'A listener goes on trying for as long as a server is in recovery, and hears when it is promoted.',
    'faults/failover › step by step › F02: a connection to a standby is destroyed, not given back; ' +
      'D02: a listener tries until it is promoted',
  ),
  tried(
    'D03',
    'A listening link that died without a word is found out by the next proof, and polled around meanwhile.',
    'worker/wake › a listener that is lost › because its link is dead is noticed by the next proof',
  ),
  tried(
    'D04',
    'A listener that was lost wakes for every queue again when it is back.',
    'faults/listener › when the listener was ended and is back, each queue wakes its workers again',
  ),
  tried(
    'D05',
    'A database that is away at the start is waited for; the worker polls until it hears.',
    'worker/outage › a server that is away at the start is waited for',
    'worker/wake › a listener that is lost › makes the worker poll, and comes back',
  ),
  tried(
    'D07',
    'Notices that come while a worker starts or stops end nothing but in silence.',
    'faults/listener › workers that start and stop in a stream of notices end quietly, each of them',
  ),
  tried(
    'D08',
    'An enqueue sends a notice only when somebody sleeps, and else waits for no commit of others that has one.',
    'faults/ghost-standby › an enqueue that wakes nobody passes a hanging commit with a notice; ' +
      'one that wakes somebody waits',
    'faults/notice-size › whoever enqueues while nobody sleeps takes no lock that others wait for',
  ),
  tried(
    'D10',
    'Each step of a connection is bounded: one that is ended or hangs anywhere is made anew.',
    'worker/outage › a link that hangs while it connects is given up and made anew',
    ENDED,
  ),
  tried(
    'D11',
    'Connections that are made too late are given up without a session, a socket or a place of the pool.',
    'faults/connections-scarce › connections that are made too late are given up, again and again, and none is kept',
  ),
  tried(
    'D13',
    'A session that the server ends takes no process down, whoever’s pool it is of.',
    ENDED,
    'client/life › a pool that was passed in › may lose its connections without taking the process down',
  ),
  tried(
    'D14',
    'A background loop that fails is heard of, comes back, and leaves the others alone.',
    LOOPS,
    'worker/maintenance › a part of maintenance that fails keeps no other from being done',
  ),
  tried(
    'D16',
    'An outage of any kind costs hardly any CPU and few attempts, and is said once in a while.',
    'faults/outage-load › a database that is %s is asked seldom, costs hardly any CPU, and is found again',
    'worker/outage › an outage says so once in a while, not at each try',
  ),
  tried(
    'D17',
    'Slots share a few connections; workers that find none left try again until they have them.',
    'faults/connections-scarce › six workers of 50 slots that start at once come up under a small max_connections',
    'worker/connections › a worker opens three to work, one to beat and one to listen, however many slots it has',
  ),
  tried(
    'D19',
    'Short timeouts of a role end neither a handler’s transaction before its own, nor its record, nor the listener.',
    'worker/pool › a role with short timeouts and a strict isolation is worked for all the same',
    'worker/transaction › one that it ends in the middle of a statement is a failure at once',
  ),
  tried(
    'D20',
    'What the server holds for a process that is gone it ends by itself: with the job’s timeout, ours when it is idle.',
    'faults/dead-links › the server ends by itself the transaction of a handler whose process and link are gone',
    'faults/idle-transactions › the server ends by itself a transaction of ours whose process was stopped in it',
    'faults/idle-transactions › each transaction of ours says how long it may be idle, and the session keeps ' +
      'nothing of it',
    'faults/dead-links › half a statement that never ends holds no lock, and is OUTCOME_UNKNOWN to whoever sent it',
  ),
  tried(
    'E01',
    'Behind a transaction pooler all of it works by polling, and the worker says that it hears nothing.',
    `${POOLER} › a worker does all of it by polling, and says that it hears nothing`,
    `${POOLER} › a transactional handler’s writes commit with its job, or not at all`,
    'pooler/let-in › a start through PgBouncer › with %s is refused, for no wait would mend it',
    'faults/registry › each test that a run through PgBouncer leaves out is in its file, and it is said why',
  ),
  tried(
    'E02',
    'Statements of many clients share a server connection without mixing.',
    `${POOLER} › jobs go in alone, by thousands, and in the caller’s transaction`,
  ),
  tried(
    'E03',
    'Nothing is asked at the start of a connection that a pooler refuses.',
    `${POOLER} › jobs go in alone, by thousands, and in the caller’s transaction`,
  ),
  tried(
    'E04',
    'No named statement is left for the next client to meet.',
    `${POOLER} › nothing is left to the next client: no lock, no setting, no statement, no open transaction`,
  ),
  tried(
    'E05',
    'Many that migrate through a pooler at once leave one schema and no lock.',
    `${POOLER} › eight migrate an empty database at once, round after round`,
  ),
  tried(
    'E07',
    'A pooler that changes its mode under a worker costs it the notices and no job.',
    'pooler/mode › a pooler whose mode is changed › from session to transaction under a worker: it ' +
      'says so, polls, and loses no job',
  ),
  tried(
    'E08',
    'After its connections were ended a client goes on: it relies on no statement of the old ones.',
    'client/life › a client › whose connections are ended while they are idle goes on with the next call',
    `${POOLER} › nothing is left to the next client: no lock, no setting, no statement, no open transaction`,
  ),
]
