// The guards of putting in, of keys, and of what ends before it ran.

import { engine, faults, guardsOf, MODEL } from './mutant.ts'

export const STORE_GUARDS = [
  ...guardsOf('end_waiting', [
    [
      'a cancelled job leaves nothing behind',
      'perform rowlock.give_up(v_ids, v_queues, v_keys, v_holders, v_large);',
      '',
      MODEL,
    ],
    [
      'a queue without history keeps none of the cancelled',
      'where coalesce(q.retention_days, 7) > 0',
      '',
      MODEL,
    ],
    [
      'a cancelled job finds its day',
      'perform rowlock.ensure_days(p_now);',
      '',
      engine('history', 'a missing day of class 7 is made by every other verb that writes history'),
    ],
    [
      'a queue without history keeps no input of the cancelled',
      'q.name = g.queue and q.retention_days = 0',
      'false',
      MODEL,
    ],
  ]),
  ...guardsOf('expire', [
    [
      'expire skips what others hold',
      'for update skip locked',
      'for update',
      faults('guards', 'expire passes by what somebody holds, and stops at its limit'),
    ],
    ['a job expires at its instant', 'where w.expires_at <= v_now', 'where w.expires_at < v_now', MODEL],
    [
      'expire has a limit',
      'limit p_limit',
      '',
      faults('guards', 'expire passes by what somebody holds, and stops at its limit'),
    ],
  ]),
  ...guardsOf('store_alike', [
    [
      'ids of jobs that are alike stand in their order',
      'order by i.id)',
      'order by i.id desc)',
      engine(
        'alike',
        'put in together ids between which another was drawn are told one by one, in the order of the jobs',
      ),
    ],
    [
      'ids are told as a run only where they are one',
      'v_last - v_first + 1 = cardinality(v_ids)',
      'v_ids is not null',
      engine(
        'alike',
        'put in together ids between which another was drawn are told one by one, in the order of the jobs',
      ),
    ],
    [
      'jobs that are alike have their delay',
      'v_now + j.delay, v_now)',
      'v_now)',
      engine('alike', 'put in together jobs that share a delay are stored as one by one'),
    ],
  ]),
  ...guardsOf('store', [
    [
      'ids stand in the order of the jobs',
      'array_agg(s.id order by s.id)',
      'array_agg(s.id)',
      engine('enqueue', 'the answer names one id for each job, in order: of several queues'),
    ],
    [
      'a job whose key is taken is not stored',
      'where not v_numbered or v_ids[g.n] = v_holders[g.n]',
      '',
      MODEL,
    ],
    ['an input of a job that is not stored is none', ' and v_ids[g.n] = v_holders[g.n];', ';', MODEL],
    [
      'an enqueue wakes',
      'perform rowlock.wake(v_queues, v_due);',
      'null;',
      faults(
        'notices',
        'a notice comes of an enqueue, and of what is put back, where somebody sleeps beyond it',
      ),
    ],
    [
      'an enqueue is committed durably',
      'perform rowlock.commit_durably();',
      '',
      engine('durable', 'an enqueue waits for the disk though the database is set not to'),
    ],
    [
      'an enqueue reads the one clock',
      'v_now timestamptz := rowlock.now()',
      'v_now timestamptz := clock_timestamp()',
      MODEL,
    ],
    [
      'a large input lies in payload',
      'case when not p_large or g.input is null or octet_length',
      'case when true or octet_length',
      faults('guards', 'a claim keeps a large input out of the rows that move'),
    ],
  ]),
  ...guardsOf('try_keys', [
    [
      'keys are taken in their order',
      'order by f.queue, f.key',
      'order by f.id',
      engine(
        'dedupe',
        'many at once two calls with the same 3,000 keys in opposite order both end, and each key has one job',
      ),
    ],
    ['the first of a key wins', 'order by g.queue, g.key, g.n)', 'order by g.queue, g.key, g.n desc)', MODEL],
    [
      'keys belong to their queue',
      `left join rowlock.dedupe d on d.queue = g.queue and d.key = g.key;
  if`,
      `left join rowlock.dedupe d on d.key = g.key;
  if`,
      MODEL,
    ],
  ]),
  ...guardsOf('win_keys', [
    [
      'a round that failed holds no keys',
      `raise exception using errcode = 'RL011';`,
      'null;',
      engine('dedupe', 'a call that must try again lets its keys go first'),
    ],
    [
      'keys that change hands are tried again',
      'for v_round in 1 .. 10 loop',
      'for v_round in 1 .. 1 loop',
      engine('dedupe', 'a call that must try again lets its keys go first'),
    ],
  ]),
  ...guardsOf('wake', [
    [
      'a stricter isolation tells everybody',
      `current_setting('transaction_isolation') not in ('read committed', 'read uncommitted')`,
      'false',
      faults(
        'notices',
        'a notice goes to everybody from a stricter isolation, which sees no flag raised since',
      ),
    ],
    [
      'nobody is woken for what they wake up for',
      'where s.queue = q.queue and s.until > p_at)',
      'where s.queue = q.queue)',
      faults(
        'notices',
        'a notice is not sent for one of two queues whose sleeper wakes up before the job is due',
      ),
    ],
    [
      'a flag counts while its worker lives',
      'and w.expires_at > v_now',
      '',
      faults('notices', 'a notice is not sent to a worker whose lease is over'),
    ],
  ]),
  ...guardsOf('commit_durably', [
    [
      'durable means that',
      `perform set_config('synchronous_commit', 'on', true);`,
      'null;',
      engine('durable', 'an enqueue waits for the disk though the database is set not to'),
    ],
  ]),
  ...guardsOf('require_read_committed', [
    [
      'a second look needs a fresh snapshot',
      `('read committed', 'read uncommitted')`,
      `('read committed', 'repeatable read')`,
      engine('claim', 'refusals verbs that look twice refuse repeatable read'),
    ],
  ]),
  ...guardsOf('give_up', [
    [
      'a job frees no key but its own',
      'and d.job_id = k.job_id',
      '',
      faults('guards', 'a key that another job has outlives the end of a job that had it before'),
    ],
    [
      'a key that is kept stays',
      'and d.until is null',
      '',
      faults('guards', 'a key that is kept until an instant outlives the end of its job'),
    ],
    [
      'an ended job leaves no request',
      'delete from rowlock.cancel_request c where c.job_id = any (p_ids);',
      'null;',
      MODEL,
    ],
    [
      'an input without history goes',
      'delete from rowlock.payload p where p.job_id = any (p_large);',
      'null;',
      MODEL,
    ],
  ]),
]
