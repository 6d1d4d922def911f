// F: servers that crash, switch roles, and answers to a commit that never come.

import { tried } from './case.ts'

export const FAILOVER = [
  tried(
    'F01',
    'When the primary dies under load with half of the workers, nothing acknowledged is lost and all goes on.',
    'faults/failover › under load › F01: a synchronous standby with both hosts in the address: ' +
      'nothing is lost, no job has two owners',
    'faults/failover › under load › F01: a synchronous standby, also like this: %j',
  ),
  tried(
    'F02',
    'A connection to a server that has become a standby is destroyed, and the next one finds the primary.',
    'faults/failover › step by step › F02: a connection to a standby is destroyed, not given back; ' +
      'D02: a listener tries until it is promoted',
    'engine/standby › a connection to a standby is not used again: the next one may lead to the new primary',
  ),
  tried(
    'F03',
    'An outcome that is refused while the server takes no writes is written when it takes them again.',
    'faults/failover › step by step › F03: an outcome that could not be written for a while is ' +
      'written later, within the lease and after it',
    'faults/hostile-settings › a worker of a role that is made read only for a while waits, and its ' +
      'results are not lost',
  ),
  tried(
    'F04',
    'An asynchronous failover loses its tail and nothing else; what went back in time wedges nothing.',
    'faults/failover › step by step › F04: ids, leases and claims go back in time: what was ' +
      'lost is free, what was kept is kept, what ran runs again',
    'faults/failover › under load › F04: an asynchronous standby loses the tail and nothing else: %j',
  ),
  tried(
    'F05',
    'A listener whose link leads to nowhere after a move of the address finds out by itself.',
    'faults/failover › step by step › F05: a listener whose connection leads to nowhere finds out by itself',
    'worker/wake › a listener that is lost › because its link is dead is noticed by the next proof',
  ),
  tried(
    'F07',
    'A write whose answer was lost says that its outcome is unknown, and can be repeated without harm.',
    'client/unknown › a connection that breaks › after the job was stored, before the answer came, ' +
      'is OUTCOME_UNKNOWN; the repeat finds it',
    'client/unknown › a connection that breaks › before the statement reached the server is ' +
      'OUTCOME_UNKNOWN too; the repeat creates the job',
    'client/unknown › a connection that breaks › in a bulk of %s is OUTCOME_UNKNOWN for all of it; ' +
      'the repeat makes it whole',
    'worker/outage › an answer that is lost › of a claim: its jobs are found and given back while the worker lives on',
    'worker/outage › an answer that is lost › of a completion: it is repeated, counts once, and is not called lost',
    'worker/outage › an answer that is lost › of a failure: the same',
  ),
]
