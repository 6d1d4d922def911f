// H: dedupe keys, and what goes back to wait while somebody else wants its key.

import { coming, tried } from './case.ts'

const MANY = 'engine/many › dedupe keys'
const FREE = 'engine/dedupe › a key is free again when its job has ended'
const REFUSED =
  'engine/dedupe › a job that becomes live again takes its key again › or is refused, with the ' +
  'holder, and changes nothing'

export const KEYS = [
  tried(
    'H01',
    'A job that is retried keeps its key all the while, so its return meets nobody.',
    'engine/dedupe › a key is kept while its job is live › %s',
    'engine/dedupe › a key is kept while its job is live › reap',
  ),
  tried(
    'H02',
    'Of many that become live again one whose key is taken holds up none of the others.',
    `${MANY} › that a live job has are named with it, and kept by it`,
    `${MANY} › of two dead letters with one key in one call the first by id has it`,
  ),
  coming('H04', 'A periodic job that fails never stands in the way of the next one.', 'schedules'),
  tried(
    'H05',
    'An enqueue with a key always answers an id, also while that key’s job is claimed or ends.',
    'client/enqueue › many jobs › producers with the same few keys, against claims that end them, always get an id',
    'engine/dedupe › many at once › calls whose keys are being freed all the while: no deadlock, no key with two jobs',
  ),
  tried('H07', 'However a job ends or goes, its key goes with it.', `${FREE} › %s`),
  tried(
    'H08',
    'What an old job leaves frees no key that another job has by now.',
    `${FREE} › a dead letter that is discarded frees no key that another job has taken since`,
    'faults/guards › a key that another job has › outlives the end of a job that had it before',
  ),
  tried(
    'H10',
    'One live job a key: queued, running and waiting for its retry alike.',
    'engine/dedupe › a key is kept while its job is live › %s',
    'engine/dedupe › many at once › two calls with the same 3,000 keys in opposite order both end, ' +
      'and each key has one job',
  ),
  tried(
    'H11',
    'A duplicate among many is answered in its place, with the job it found.',
    'engine/dedupe › many at once › the first of a call wins, what is live wins over the call, ' +
      'answers keep their order',
    'client/enqueue › many jobs › results stand at the place of their job, also of those that were there already',
  ),
  tried(
    'H13',
    'Who wants a key that an open transaction has waits for that one alone, as long as its lock_timeout says.',
    'engine/dedupe › a lock_timeout of the caller bounds the wait for a key, and other keys are free meanwhile',
  ),
  tried(
    'H14',
    'A person who puts a job back whose key is taken is told whose it is; the others of the call are put back.',
    REFUSED,
    `${MANY} › that a live job has are named with it, and kept by it`,
  ),
]
