// B: what jobs carry and what is thrown: inputs, results, errors, rows that hold nonsense.

import { absent, tried } from './case.ts'

const THROWN =
  'worker/failing › whatever is thrown, the job ends retryable with a row that can be read, and others go on'
const EXTREME = 'engine/extremes › a row of the extreme › %s = %s: all ends well, and its neighbours with it'

export const DATA = [
  tried(
    'B01',
    'What PostgreSQL cannot store is refused at the enqueue; as a result it leaves the job done, and says so.',
    'worker/run › what a handler answers › a result that cannot be stored leaves the job done, and ' +
      'says so in its place',
    'client/bad-input › bad input is refused alike on every path › %s: %s',
  ),
  tried(
    'B02',
    'An error of any size and content is recorded in a form that fits, cut on characters.',
    THROWN,
  ),
  tried(
    'B04',
    'A bad job among many is named by index and path on every way in, and nothing of the call is stored.',
    'client/bad-input › bad input is refused alike on every path › %s: %s',
    'engine/enqueue › a fault › one bad job of a thousand is named, and none is stored',
  ),
  tried(
    'B05',
    'Anything may be thrown, also nothing: the attempt fails with words that can be read.',
    THROWN,
    'worker/failing › a promise that is rejected with nothing is a failure too',
  ),
  absent(
    'B07',
    'A failure crosses from the process that ran the handler to the one that records it.',
    'Handlers run in the process and thread of their worker: no failure is sent from one to another.',
  ),
  tried(
    'B08',
    'Ids are text at every edge and exact beyond 2^53; a BigInt in an input is refused with its path.',
    'faults/large-ids › ids from %s on › are the same on the command line',
    'faults/large-ids › ids from %s on › are enqueued, found by key, run, and known by their handlers',
    'client/bad-input › bad input is refused alike on every path › %s: %s',
  ),
  tried(
    'B10',
    'JSON of every type is stored as that type and comes back equal, through each driver and from SQL.',
    'faults/names-and-numbers › JSON of every type is stored as that type, whoever brings it',
  ),
  tried(
    'B11',
    'A row with a number at its end stops nobody: counters stay at their greatest and the job ends.',
    EXTREME,
    'engine/extremes › a row of the extreme › %s = %s: a failure of all is settled for all',
    'client/bad-input › bad input is refused alike on every path › %s: options: %s',
  ),
  tried(
    'B13',
    'No enqueue is refused for the size of a notice: it is a word and a name.',
    'faults/notice-size › a job of a megabyte wakes by the name of its queue, and the longest name fits',
    'faults/notice-size › two thousand queues in one transaction: each sleeper is told once, and nothing is refused',
  ),
  tried(
    'B14',
    'Notices are as many and as long above a backlog as above none.',
    'faults/notice-size › a backlog of a hundred thousand changes neither number nor size of them',
  ),
  tried(
    'B16',
    'A database that is too slow is not asked the more for it, and is worked with again when it is quick.',
    'faults/outage-load › a database that answers too late is not asked the more for it',
  ),
  tried(
    'B17',
    'A row whose JSON another program wrote strands none of those that were claimed with it.',
    EXTREME,
    'engine/why-begun › whatever is written in a row › facts of another program that are not what ' +
      'ours are: there is an answer',
  ),
]
