// A: who has a job, when workers crash, freeze, lag or come back.

import { tried } from './case.ts'

const RACE = 'at the edge of a lease a completion or the reaper wins, never both, and the loser is told'
const OLD_CLAIM =
  'a stale claim changes nothing › %s with an older claim of the same worker, beside a valid pair'

export const OWNERSHIP = [
  tried(
    'A01',
    'A reaper that comes late never moves a job that has ended or has another owner.',
    'faults/interleaving › running: complete and reap, in every order',
    `faults/stale-owner › ${RACE}`,
  ),
  tried(
    'A02',
    'Of a completion and a verdict of death one wins; the other changes nothing and is told so.',
    'faults/stopped-owner › a process that goes on when its lease is over about now: each job ends ' +
      'once, and whoever lost it knows',
    `faults/stale-owner › ${RACE}`,
    'worker/crash › a frozen worker that thaws changes nothing: its jobs ran elsewhere, each ends once',
  ),
  tried(
    'A03',
    'Two claims of one job by one process have two fences, and the older one opens nothing.',
    `engine/states › ${OLD_CLAIM}`,
    'engine/claim › lines › each claim has a claim_id of its own and counts an attempt',
  ),
  tried(
    'A04',
    'An abandoned attempt cannot pass for its successor, though worker and name are the same.',
    `engine/states › ${OLD_CLAIM}`,
    'faults/guards › an end in a transaction › cannot begin under an older claim',
  ),
  tried(
    'A05',
    'A heartbeat that was under way for too long brings no lease back.',
    'faults/late-beats › a beat that arrives when its job has another owner takes nothing back',
    'faults/late-beats › a beat that arrives when its lease is over and nobody has noticed yet brings nothing back',
    'worker/outage › a heartbeat that arrives after its lease was over extends nothing',
    'engine/reap › a lease that is over › is over for ever: no heartbeat brings it back',
  ),
  tried(
    'A06',
    'A handler of many leases keeps its job, also while every slot of its worker is busy.',
    'faults/stale-owner › a handler of many leases is renewed while every slot is busy: nobody else ever has its job',
  ),
  tried(
    'A07',
    'A beat has room to be late: a link whose round trip takes four tenths of the lease costs nobody a job.',
    'faults/late-beats › a link whose round trip takes four tenths of the lease leaves beats a margin, ' +
      'on a machine that is %s',
    'worker/outage › a link whose round trip takes three tenths of the lease costs neither the lease nor a second run',
    'worker/options › a worker › beats three times a lease unless it is told how often',
  ),
  tried(
    'A08',
    'A timeout is told to the handler itself; a deaf one keeps its slot, is reported, and its late result is refused.',
    'worker/timeout › a deaf handler: its attempt timed out, its slot stays taken, its late result is refused',
    'worker/timeout › at its timeout a handler is told why, and what it throws then is a timeout',
  ),
  tried(
    'A10',
    'A process that was blocked or asleep for several leases knows it on waking, and starts nothing it has lost.',
    'worker/crash › one that blocks it for three leases is noticed: what was prefetched never starts here',
    'worker/crash › a frozen worker that thaws changes nothing: its jobs ran elsewhere, each ends once',
  ),
  tried(
    'A11',
    'A restart of the server hands no running job to a second worker before its lease is over.',
    'faults/server-restart › a restart (%s) shorter than the lease costs nobody an attempt: what ' +
      'runs goes on, and ends once',
    'engine/reap › after an outage › a worker that could not beat since before the server started has one more lease',
  ),
  tried(
    'A13',
    'A worker is itself and no other, however it is called: jobs of a dead one run again though its namesake lives.',
    'faults/stale-owner › workers of one name are strangers: the dead one’s jobs run again, though its namesake lives',
    'worker/lease › each identity is new',
  ),
  tried(
    'A14',
    'A dead job gives its place under a limit back, once.',
    'worker/limits › a limit on running jobs › holds where a worker is killed and its jobs are given back',
    'engine/max-running › a limit on running jobs › counts what a lost worker had until that is given back, and ' +
      'never what was given back twice',
  ),
  tried(
    'A16',
    'Whatever handlers do when a stop aborts them, every row is ended or handed back.',
    'worker/stop › draining › jobs of deaf handlers go back once, however many there are, and the worker stays fit',
    'worker/stop › draining › after the grace a handler is aborted and its job handed back, without a failure',
    'worker/stop › draining › a handler that ends well all the same is done',
  ),
  tried(
    'A17',
    'A crash at any point leaves no row that is neither claimable nor given back.',
    'faults/kill-points › killed at any point nothing is lost, doubled or stuck › work',
    'ground/states › the state table › reaches every state from a new job, and uses every verb',
  ),
  tried(
    'A19',
    'Whoever is on duty gives back jobs that it could not run itself, by their own policy.',
    'faults/stale-owner › jobs of a service that died are given back by another that cannot run ' +
      'them, to their own policy',
  ),
  tried(
    'A20',
    'A reaper that dies at any statement has done it or not; the next one goes on.',
    'faults/kill-points › killed at any point nothing is lost, doubled or stuck › reap',
    'engine/reap › a reaper whose backend is killed has changed nothing, and the next one does it',
  ),
  tried(
    'A22',
    'What a killed worker ran starts again within its lease and five seconds.',
    'faults/stale-owner › what a killed worker ran starts again within its lease and five seconds',
    'faults/second-starts › workers that are killed one at a time: each job of theirs starts again within its lease' +
      ' and five seconds',
  ),
  tried(
    'A23',
    'A worker that cannot beat judges by its own monotonic clock that its lease is gone, stops, and comes back as new.',
    'worker/outage › a heartbeat that does not come through costs the lease, though everything else works',
    'worker/lease › a lease that runs out is lost once, by itself',
  ),
]
