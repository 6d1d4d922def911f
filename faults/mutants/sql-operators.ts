// The guards of what people do to jobs.

import { engine, faults, guardsOf, MODEL } from './mutant.ts'

export const OPERATORS_GUARDS = [
  ...guardsOf('cancel_many', [
    [
      'a request that came to nothing is taken back',
      `if v_new <> '{}' then`,
      'if false then',
      faults('guards', 'operators leave no request behind for a job that ended while they asked'),
    ],
    [
      'a filter is looked at under the lock',
      'array(select w.ctid from rowlock.waiting w where w.ctid = any (v_tids) and w.id = any (v_fit))',
      'array(select w.ctid from rowlock.waiting w where w.ctid = any (v_tids))',
      engine('many', 'a filter is judged by cancel under the lock: what changed since is left alone'),
    ],
    [
      'who cancels is written down',
      `perform rowlock.note_each('cancel', v_done, p_actor, p_reason, p_queues => v_queues);
      v_said := v_said || rowlock.said(v_done, 'cancelled');`,
      `v_said := v_said || rowlock.said(v_done, 'cancelled');`,
      MODEL,
    ],
    [
      'a request keeps its reason',
      'select a.id, v_now, v_actor, v_reason from',
      'select a.id, v_now, null, null from',
      MODEL,
    ],
    [
      'a running job is asked in a later look',
      '       where r.id = any (v_left) and r.id = any (v_asked)',
      '       where false and r.id = any (v_asked)',
      MODEL,
    ],
  ]),
  ...guardsOf('redrive_many', [
    [
      'a redrive takes the key again',
      'v_holders := rowlock.win_keys(v_of, v_keys, v_keyed);',
      'v_holders := v_keyed;',
      MODEL,
    ],
    [
      'a redrive is committed durably',
      'perform rowlock.commit_durably();',
      '',
      faults('guards', 'what becomes live again is durable though the database is set not to'),
    ],
    [
      'a redrive forgets requests',
      'delete from rowlock.cancel_request c where c.job_id = any (v_done);',
      '',
      engine(
        'cancel',
        'a running job that became a dead letter with a request in flight and is redriven before the sweep runs',
      ),
    ],
    [
      'a job whose key is taken is not put back',
      'where d.id = any (v_fit) and (d.dedupe_key is null or d.id = any (v_mine))',
      'where d.id = any (v_fit)',
      engine('many', 'dedupe keys of two dead letters with one key in one call the first by id has it'),
    ],
    [
      'keys of jobs that could not be put back are given up',
      `  if v_mine <> '{}' then
    delete`,
      `  if false then
    delete`,
      engine('many', 'dedupe keys of a dead letter that could not be had are given back'),
    ],
    [
      'a redrive wakes',
      'perform rowlock.wake(v_queues, v_now);',
      'null;',
      faults('notices', 'a notice comes of a resume, a redrive, a retry and a job that is to run now'),
    ],
  ]),
  ...guardsOf('discard_many', [
    [
      'a discarded job finds its day',
      'perform rowlock.ensure_days(v_now);',
      '',
      engine('many', 'what jobs leave behind discard makes a day of history that is missing'),
    ],
    [
      'a queue without history keeps none of the discarded',
      'where coalesce(q.retention_days, 7) > 0',
      '',
      engine('many', 'what jobs leave behind discard leaves nothing in a queue without history'),
    ],
    [
      'a queue without history keeps no input of the discarded',
      'delete from rowlock.payload p where p.job_id = any (v_large);',
      'null;',
      engine('many', 'what jobs leave behind discard leaves nothing in a queue without history'),
    ],
  ]),
  ...guardsOf('retry_many', [
    [
      'a retry takes the key',
      'v_holders := rowlock.win_keys(v_of, v_keys, v_news);',
      'v_holders := v_news;',
      MODEL,
    ],
    [
      'a retry is committed durably',
      'perform rowlock.commit_durably();',
      '',
      faults('guards', 'what becomes live again is durable though the database is set not to'),
    ],
    [
      'a retry has its own copy of a large input',
      'select o.new_id, o.body from old o where o.input is null',
      'select o.new_id, o.body from old o where false',
      MODEL,
    ],
    [
      'a retry names what it repeats',
      'select o.new_id, v_now, v_now, o.id, o.timeout',
      'select o.new_id, v_now, v_now, null, o.timeout',
      MODEL,
    ],
    [
      'a retry wakes',
      'perform rowlock.wake(v_queues, v_now);',
      'null;',
      faults('notices', 'a notice comes of a resume, a redrive, a retry and a job that is to run now'),
    ],
  ]),
  ...guardsOf('run_now_many', [
    ['what is due keeps its place', 'and w.available_at > v_now', '', MODEL],
    [
      'run now wakes',
      'perform rowlock.wake(v_queues, v_now);',
      'null;',
      faults('notices', 'a notice comes of a resume, a redrive, a retry and a job that is to run now'),
    ],
  ]),
  ...guardsOf('prioritize_many', [
    [
      'priorities have bounds',
      'p_priority not between -10 and 10',
      'p_priority not between -11 and 11',
      faults('guards', 'operators are told which priorities there are'),
    ],
  ]),
  ...guardsOf('purge_many', [
    [
      'a purge takes the attempts along',
      'delete from rowlock.attempt a where a.job_id = any (v_done);',
      '',
      MODEL,
    ],
    [
      'a purge takes the input along',
      'delete from rowlock.payload p where p.job_id = any (v_done);',
      '',
      MODEL,
    ],
  ]),
  ...guardsOf('lock_waiting', [
    [
      'a change of many waits for nobody',
      'order by w.id for update skip locked',
      'order by w.id for update',
      engine('many', 'a row that somebody holds is busy for cancel; the others are changed'),
    ],
    [
      'a change of one waits for its row',
      `where w.id = any (p_ids) order by w.id for update);
  end if`,
      `where w.id = any (p_ids) order by w.id for update skip locked);
  end if`,
      engine('cancel', 'a waiting job that a claim has in flight is waited for, and asked'),
    ],
  ]),
  ...guardsOf('lock_dead_letters', [
    [
      'a change of many dead letters waits for nobody',
      'order by d.id for update skip locked',
      'order by d.id for update',
      engine('many', 'a row that somebody holds is busy for discard; the others are changed'),
    ],
  ]),
  ...guardsOf('check_many', [
    [
      'verbs for many refuse another isolation',
      'perform rowlock.require_read_committed(p_verb);',
      '',
      engine('claim', 'refusals verbs that look twice refuse repeatable read'),
    ],
    [
      'verbs for many have a limit',
      'if cardinality(p_ids) > 1000 then',
      'if false then',
      faults('guards', 'operators change a thousand jobs a call at the most'),
    ],
  ]),
  ...guardsOf('pause', [['a paused queue keeps its instant', ' where q.paused_at is null;', ';', MODEL]]),
  ...guardsOf('resume', [
    ['a resume that changes nothing says so', ' and q.paused_at is not null;', ';', MODEL],
    [
      'a resume wakes',
      `perform rowlock.wake(array[p_queue], '-infinity');`,
      '',
      faults('notices', 'a notice comes of a resume, a redrive, a retry and a job that is to run now'),
    ],
  ]),
]
