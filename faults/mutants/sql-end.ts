// The guards of starts and ends.

import { engine, faults, guardsOf, MODEL } from './mutant.ts'

export const END_GUARDS = [
  ...guardsOf('complete', [
    [
      'complete names the claim',
      'select g.id, g.claim_id, g.result, g.ran_ms, null::text',
      'select g.id, (select r.claim_id from rowlock.running r where r.id = g.id), g.result, g.ran_ms, null::text',
      engine('states', 'a stale claim changes nothing complete with the claim of nobody'),
    ],
    [
      'complete reads the one clock',
      'v_now timestamptz := rowlock.now()',
      'v_now timestamptz := clock_timestamp()',
      MODEL,
    ],
    [
      'a done job leaves nothing behind',
      'perform rowlock.give_up(v_ids, v_queues, v_keys, v_holders, v_large);',
      '',
      MODEL,
    ],
    [
      'a queue without history keeps none of the done',
      `     where d.retention_days > 0
`,
      '',
      engine(
        'history',
        'a retention class 0 keeps no row and no input of an ended job, but the attempts that failed',
      ),
    ],
    [
      'history has the class of its queue',
      `d.retention_days, 'done'`,
      `7, 'done'`,
      engine('history', 'a retention class holds for the jobs that end from now on'),
    ],
    [
      'a queue without history keeps no input of the done',
      'q.name = g.queue and q.retention_days = 0',
      'false',
      faults(
        'guards',
        'an end in a queue without history keeps the input of a dead letter, and of nothing else',
      ),
    ],
    [
      'a job has the history of its own queue',
      'case when t.queue = g.queue then',
      'case when t.queue is not null then',
      engine(
        'alike',
        'completed together a job has the history that its own queue keeps, whatever queue its group names',
      ),
    ],
    [
      'a job that is named twice ends once',
      'count(distinct i.id) < count(*)',
      'false',
      engine('alike', 'completed together a job that is named twice ends once, and keeps its result'),
    ],
    [
      'complete looks each job up',
      `where r.id = any (v_given_ids)
       and not`,
      'where not',
      engine('plan', 'plans of complete: each job is looked up by its id, planned while 5 ran'),
    ],
    [
      'jobs that are completed together have the class of their queue',
      'g.queue, coalesce(q.retention_days, 7::smallint)',
      'g.queue, 7::smallint',
      engine('alike', 'completed together history is kept for 30 days where its queue says 30'),
    ],
    [
      'a start that is known is not guessed',
      'coalesce(g.started_at, greatest(',
      'coalesce(null, greatest(',
      faults('guards', 'an end keeps a start that is known'),
    ],
    ['no job started before its claim', 'greatest(g.claimed_at, v_now', 'greatest(null, v_now', MODEL],
  ]),
  ...guardsOf('settle', [
    [
      'every other end names the claim',
      'where r.id = g.id and r.claim_id = g.claim_id',
      'where r.id = g.id',
      engine('states', 'a stale claim changes nothing fail with the claim of nobody'),
    ],
    ['only a failed attempt counts a failure', 'g.failures + g.failed::integer', 'g.failures + 1', MODEL],
    [
      'the last failure makes a dead letter',
      '>= coalesce(c.max_attempts, 10) then',
      '> coalesce(c.max_attempts, 10) then',
      MODEL,
    ],
    [
      'ten failures are enough',
      '>= coalesce(c.max_attempts, 10) then',
      '>= coalesce(c.max_attempts, 11) then',
      faults('guards', 'an end by the tenth failure makes a dead letter where nothing else is said'),
    ],
    ['a request to cancel wins', 'when c.asked or c.cancelled then', 'when c.cancelled then', MODEL],
    ['a handler may cancel its job', 'when c.asked or c.cancelled then', 'when c.asked then', MODEL],
    ['a permanent error is final', `when c.permanent then 'failed'`, '', MODEL],
    ['a loss is counted', 'least(g.losses + 1, 32767)', 'g.losses', MODEL],
    [
      'a loss is forgotten when the job ends by itself',
      `             else 0
`,
      `             else g.losses
`,
      MODEL,
    ],
    [
      'a hand-back forgets no loss',
      `when g.outcome = 'handed_back' then g.losses`,
      '',
      engine('suspect', 'a suspect that is handed back unstarted is one still'),
    ],
    [
      'a delay is not negative',
      'least(greatest(c.after_ms, 0), 315360000000)',
      'least(c.after_ms, 315360000000)',
      faults('guards', 'an end with a delay below 0 is due at once, and never before now'),
    ],
    [
      'a delay has an end',
      'least(greatest(c.after_ms, 0), 315360000000)',
      'greatest(c.after_ms, 0)',
      faults('guards', 'an end with a delay beyond the calendar is due in ten years'),
    ],
    ['what is put back keeps its place', 'else c.available_at', 'else p_now', MODEL],
    [
      'the backoff counts this failure',
      'c.backoff, c.failures_now, random()',
      'c.backoff, c.failures, random()',
      faults('guards', 'an end waits as its backoff says for just this failure'),
    ],
    [
      'the backoff is spread',
      'c.failures_now, random())',
      'c.failures_now, 0.5)',
      faults('guards', 'an end spreads the delays of jobs that failed together'),
    ],
    [
      'a cancelled attempt says so',
      `case when f.state = 'cancelled' then 'cancelled' else f.outcome end`,
      'f.outcome',
      MODEL,
    ],
    ['attempts are kept where history is not', 'greatest(f.retention_days, 1)', 'f.retention_days', MODEL],
    [
      'a queued job has no cause',
      `case when f.state = 'retryable' then coalesce(f.cause, 'unknown') end`,
      'f.cause',
      MODEL,
    ],
    [
      'a job that is put back still expires',
      'f.id, f.due_at, f.enqueued_at, f.expires_at,',
      'f.id, f.due_at, f.enqueued_at, null,',
      MODEL,
    ],
    [
      'an ended job gives its key up',
      `array_agg(f.id)
           filter (where f.state in ('failed', 'cancelled', 'dead_letter') and f.dedupe_key is not null),`,
      'null::bigint[],',
      MODEL,
    ],
    ['a heeded request is settled', 'array_agg(f.id) filter (where f.asked),', 'null::bigint[],', MODEL],
    [
      'a request that came since is left',
      'array_agg(f.id) filter (where f.asked),',
      'array_agg(f.id),',
      faults('guards', 'an end that did not see a request to cancel leaves it to the sweep'),
    ],
    [
      'a queue without history keeps no input of the failed',
      `array_agg(f.id) filter (where f.state in ('failed', 'cancelled') and f.input is null and f.retention_days = 0),`,
      'null::bigint[],',
      faults(
        'guards',
        'an end in a queue without history keeps the input of a dead letter, and of nothing else',
      ),
    ],
    [
      'a dead letter keeps its input',
      `('failed', 'cancelled') and f.input is null`,
      `('failed', 'cancelled', 'dead_letter') and f.input is null`,
      faults(
        'guards',
        'an end in a queue without history keeps the input of a dead letter, and of nothing else',
      ),
    ],
    [
      'what is put back wakes',
      'perform rowlock.wake(v_woken, v_due);',
      'null;',
      faults(
        'notices',
        'a notice comes of an enqueue, and of what is put back, where somebody sleeps beyond it',
      ),
    ],
  ]),
  ...guardsOf('fail', [['a failure is counted', `|| jsonb_build_object('failed', true)`, '', MODEL]]),
  ...guardsOf('snooze', [
    [
      'a snooze has a delay',
      `coalesce(j.job -> 'after_ms', '0')`,
      `j.job -> 'after_ms'`,
      faults('guards', 'an end by a snooze that says nothing is due at once'),
    ],
  ]),
  ...guardsOf('start', [
    [
      'start names the claim',
      'and r.id = g.id and r.claim_id = g.claim_id',
      'and r.id = g.id',
      engine('states', 'a stale claim changes nothing start with the claim of nobody'),
    ],
    [
      'start waits for nobody',
      'for no key update skip locked',
      'for no key update',
      faults('guards', 'start passes a row by that somebody has locked'),
    ],
    [
      'the heartbeat writes beside a held row',
      'for no key update skip locked',
      'for update skip locked',
      engine('reap-session', 'a handler’s transaction lets the heartbeat write beside it'),
    ],
    [
      'the first start counts',
      `coalesce(r.started_at,
`,
      `coalesce(null,
`,
      faults('guards', 'an end keeps a start that is known'),
    ],
    ['no job starts before its claim', 'greatest(r.claimed_at, v_now', 'greatest(null, v_now', MODEL],
  ]),
  ...guardsOf('finish', [
    [
      'a missing day is made',
      'perform rowlock.make_days(rowlock.now(), 1);',
      '',
      engine(
        'history',
        'a missing day is made by finish itself, and nothing of the batch is lost or doubled',
      ),
    ],
    [
      'a second try begins anew',
      `      v_moved := '[]';
`,
      '',
      faults('guards', 'an end of many answers each once, though a missing day made it begin anew'),
    ],
  ]),
  ...guardsOf('settle_each', [
    [
      'one row that is refused keeps no other',
      `exception when integrity_constraint_violation or data_exception or raise_exception then
    raise warning`,
      `exception when division_by_zero then
    raise warning`,
      engine('reap', 'a job that something in the database refuses keeps no other from its way back'),
    ],
  ]),
]
