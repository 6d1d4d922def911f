// The guards of a bound on how much waits in a queue.

import { engine, guardsOf } from './mutant.ts'

const full = (name: string) => engine('max-waiting', name)
const ONE_BY_ONE = full(
  'a queue with a bound takes jobs one by one up to it, to the job, and refuses the next',
)
const LARGE = full(
  'a queue with a bound that is large is counted by one at a time; the others go by what they know',
)

export const FULL_GUARDS = [
  ...guardsOf('store_alike', [
    [
      'jobs that are alike are let in by the bound',
      'v_job.max_waiting is not null and rowlock.is_full',
      'false and rowlock.is_full',
      ONE_BY_ONE,
    ],
  ]),
  ...guardsOf('store', [
    [
      'that no queue has a bound is read from an index',
      'set enable_seqscan = off\n',
      '',
      full('what queue has a bound is known by one block a call, whether there is one or none'),
    ],
    [
      'a job that names no queue is let in by the bound too',
      `q.name = 'default' or p_jobs`,
      'p_jobs',
      full('a full queue that refuses refuses what SQL enqueues, with the same state and detail'),
    ],
  ]),
  ...guardsOf('turn_away', [
    [
      'a full queue refuses unless it is to drop',
      `if v_queue.when_full is distinct from 'drop' then`,
      'if false then',
      full(
        'a full queue that refuses refuses the whole call, of whichever queues, and names the first job without room',
      ),
    ],
    [
      'a duplicate needs no room',
      ' and p_ids[j.n] = p_holders[j.n]) as g',
      ') as g',
      full('a queue with a bound lets a duplicate in: it needs no room'),
    ],
    [
      'a dropped job keeps no key',
      'and d.job_id = any (v_dropped);',
      'and false;',
      full('a full queue that drops keeps no key of a dropped job, and knows the duplicate of a live one'),
    ],
  ]),
  ...guardsOf('is_full', [
    [
      'what was let in since the count takes room',
      'v_last.given_out < greatest(p_most - v_last.waiting, p_most / 10)',
      'true',
      ONE_BY_ONE,
    ],
    [
      'near its bound a queue is not counted at every call',
      'p_most - v_last.waiting, p_most / 10)',
      'p_most - v_last.waiting, 0)',
      full(
        'a queue with a bound is counted once while all fits, and near its bound each time a tenth of it was added',
      ),
    ],
    [
      'a count is of its bound',
      ' and l.most = p_most',
      '',
      full('a queue with a bound has no count under another bound'),
    ],
    [
      'a full queue is not counted at every call',
      'greatest(v_last.took_ms * 100, 100)',
      '0',
      full('a queue with a bound that was found full is believed to be for a while, and then counted anew'),
    ],
  ]),
  ...guardsOf('measure', [
    [
      'a large queue is counted by one at a time',
      'p_most <= 10000 or pg_try_advisory_xact_lock',
      'p_most <= 10000 or true or pg_try_advisory_xact_lock',
      LARGE,
    ],
    ['the lock of a count goes with the count', `raise exception using errcode = 'RL011';`, 'null;', LARGE],
  ]),
  ...guardsOf('sweep', [
    [
      'a full queue is counted by who maintains',
      'l.waiting >= q.max_waiting;',
      'false;',
      full(
        'a queue with a bound is counted by the workers’ upkeep while it is full, so that who enqueues need not',
      ),
    ],
  ]),
  ...guardsOf('import_jobs', [
    [
      'an import does not count what was dropped as there already',
      `'existing') - v_dropped;`,
      `'existing');`,
      full('a full queue that drops an import counts what was dropped'),
    ],
  ]),
]
