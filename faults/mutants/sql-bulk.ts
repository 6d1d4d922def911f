// The guards of changes of many jobs, in steps and not: what they wait for, remember, count and give back.

import { engine, guardsOf } from './mutant.ts'

const bounds = (name: string) => engine('bulk-bounds', name)

export const BULK_GUARDS = [
  ...guardsOf('run_bulk', [
    [
      'what ran and was none of its jobs is not counted',
      'and -(e.answer ->> 0)::bigint = any (v_ran))',
      'and false)',
      engine(
        'bulk',
        'a job that ran when its turn came is changed if it waits again at the end, and not counted if not',
      ),
    ],
    [
      'what is to be tried again has a bound',
      'v_room integer := 10000;',
      'v_room integer := 1000000;',
      bounds(
        'what is to be tried again stands in one row a job that is busy without room is counted as busy',
      ),
    ],
    [
      'what ran and cannot be remembered is counted',
      `select 'running', v_beyond where v_beyond > 0`,
      `select 'running', v_beyond where false`,
      bounds(
        'what is to be tried again stands in one row so of jobs that run, those beyond 10,000 are counted as running',
      ),
    ],
    [
      'a step ends where its look at what runs ends',
      'least(coalesce(s.searched_to, v_bulk.upto_id), t.searched_to)',
      'coalesce(s.searched_to, v_bulk.upto_id)',
      bounds('what is to be tried again stands in one row and a step ends where its look at what runs ends'),
    ],
  ]),
  ...guardsOf('stop_bulk', [
    [
      'a stop waits for the step in progress',
      'where b.id = p_id for update;',
      'where b.id = p_id;',
      bounds('a stop waits for a step in progress, and leaves one alone that has ended with it'),
    ],
    [
      'a stop does not wait for ever',
      "set lock_timeout = '2s'",
      'set lock_timeout = 0',
      bounds('a stop does not wait for ever: of a step that stays open it says BULK_BUSY'),
    ],
  ]),
  ...guardsOf('win_free_keys', [
    [
      'a key in hand is left to whoever has it',
      "set lock_timeout = '200ms'",
      'set lock_timeout = 0',
      bounds(
        'a redrive in steps leaves a key that an open transaction has in hand, and comes to its job again',
      ),
    ],
    [
      'keys that are free are found among those that are not',
      'if v_from < v_to then',
      'if false then',
      bounds(
        'a redrive in steps leaves a key that an open transaction has in hand, and comes to its job again',
      ),
    ],
  ]),
  ...guardsOf('redrive', [
    [
      'a redrive of one waits for its key',
      'p_wait => true',
      'p_wait => false',
      bounds('a redrive in steps called for one job waits for its key'),
    ],
  ]),
  ...guardsOf('retry', [
    [
      'a retry of one waits for its key',
      'p_wait => true',
      'p_wait => false',
      bounds('a retry in steps called for one job waits for its key'),
    ],
  ]),
  ...guardsOf('retry_many', [
    [
      'a retry of many is committed durably',
      'perform rowlock.commit_durably();',
      '',
      bounds('a retry of many is durable though the role is set not to: retry'),
    ],
    [
      'a retry gives back keys of jobs that came to nothing',
      `   where d.queue = k.queue and d.key = k.key and d.job_id = k.new_id
     and`,
      `   where false
     and`,
      bounds('a retry of many gives the keys back of those that came to nothing'),
    ],
    [
      'a retry names no holder that came to nothing',
      'v_keyed, v_holders, array(select m.value::bigint from jsonb_each_text(v_mine) as m));',
      `v_keyed, v_holders, array(
            select k.new_id from unnest(v_news, v_holders) as k (new_id, holder)
             group by k.new_id, k.holder having k.new_id = k.holder and (select count(*) from unnest(v_holders) as h
             where h = k.holder) = 1));`,
      bounds(
        'a retry of many names no holder that never was: whose twin came to nothing is busy, and has its turn',
      ),
    ],
  ]),
  ...guardsOf('check_many', [
    [
      'only the verb for one waits',
      'if p_wait and cardinality(p_ids) > 1 then',
      'if false then',
      bounds('only the verb for one job may wait for what others hold: purge'),
    ],
  ]),
  ...guardsOf('drop_day', [
    [
      'a day that is not due is left alone',
      'select d.parent into v_parent from rowlock.days_due(null) d where d.day = p_day;',
      `v_parent := split_part(p_day, '_', 1); perform 1;`,
      engine('history', 'a day that is not due keeps its jobs and their inputs, whoever asks to drop it'),
    ],
  ]),
]
