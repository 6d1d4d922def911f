// The guards of leases, of transactions of handlers, and of giving back what was lost.

import { engine, faults, guardsOf, MODEL } from './mutant.ts'

const STATEMENT_FAILED = engine(
  'reap-session',
  'a handler’s transaction in which a statement failed keeps its job while its session and its lease live',
)

export const LEASE_GUARDS = [
  ...guardsOf('hold', [
    [
      'hold names the claim',
      'r.id = p_id and r.claim_id = p_claim_id',
      'r.id = p_id',
      faults('guards', 'an end in a transaction cannot begin under an older claim'),
    ],
    [
      'hold locks',
      'p_claim_id for key share',
      'p_claim_id',
      engine(
        'reap-session',
        'a handler’s transaction that lives is passed by, though the lease of its worker be over',
      ),
    ],
    [
      'the heartbeat passes beside hold',
      'for key share',
      'for update',
      engine('reap-session', 'a handler’s transaction lets the heartbeat write beside it'),
    ],
  ]),
  ...guardsOf('require_held', [
    [
      'only who holds completes',
      'is distinct from',
      '<>',
      faults('guards', 'an end in a transaction is refused to who does not hold'),
    ],
  ]),
  ...guardsOf('complete_in_transaction', [
    [
      'a late completion raises',
      ') = 0 then',
      ') < 0 then',
      engine(
        'reap-session',
        'a handler’s transaction that completes while a reaper has the row waits for it, and is refused',
      ),
    ],
    [
      'a handler that ended its transaction completes nothing',
      'perform rowlock.require_held(p_claim_id);',
      '',
      faults('guards', 'an end in a transaction is refused to who does not hold'),
    ],
    [
      'a completion in a transaction finds its day',
      'perform rowlock.ensure_days(rowlock.now());',
      '',
      engine('history', 'a missing day of class 7 is made by every other verb that writes history'),
    ],
  ]),
  ...guardsOf('reap', [
    [
      'one reaper at a time',
      `not pg_try_advisory_xact_lock(rowlock.lock_key('reap'))`,
      'false',
      faults('upkeep', 'the reaper does nothing while another is at work, though there is more to do'),
    ],
    [
      'the reaper passes a living session by',
      'for update of r skip locked',
      'for update of r',
      engine(
        'reap-session',
        'a handler’s transaction that lives is passed by, though the lease of its worker be over',
      ),
    ],
    [
      'jobs of a worker that is gone are given back',
      `where w.id is null
              or r.worker_id`,
      'where r.worker_id',
      engine('reap', 'a worker row that is missing leaves orphans, which are given back'),
    ],
    [
      'jobs of a lease that is over are given back',
      'where w.expires_at <= v_now\n       and not',
      'where false and not',
      MODEL,
    ],
    ['jobs of a living lease are left', 'where w.expires_at <= v_now\n       and not', 'where not', MODEL],
    [
      'the end of a lease is seen under the lock of its worker',
      '       for no key update skip locked);\n  select jsonb_agg',
      '    );\n  select jsonb_agg',
      engine(
        'reap',
        'a lease that is over is not taken for over while a beat that extended it waits to commit',
      ),
    ],
    [
      'jobs of a session that is gone are given back',
      'or r.in_transaction and not rowlock.is_session_alive(r.session_pid)',
      '',
      engine(
        'reap-session',
        'a handler’s transaction whose session is killed is given back at once, though the lease lives',
      ),
    ],
    [
      'a session that lives keeps its job after a statement that failed',
      'and not rowlock.is_session_alive(r.session_pid)',
      '',
      STATEMENT_FAILED,
    ],
    [
      'a loss is the session’s while the lease lives, and else the lease’s',
      'when r.in_transaction and w.expires_at > v_now\n',
      'when r.in_transaction\n',
      STATEMENT_FAILED,
    ],
    [
      'after an outage a lease is waited for',
      'and not (w.beat_at < v_server_start and clock_timestamp() < v_server_start + w.lease)',
      '',
      engine(
        'reap',
        'after an outage a worker that could not beat since before the server started has one more lease',
      ),
    ],
    ['only what had started failed', `'failed', l.started_at is not null`, `'failed', true`, MODEL],
    ['what had started failed', `'failed', l.started_at is not null`, `'failed', false`, MODEL],
    ['the reaper counts a loss', `'lost', true,`, `'lost', false,`, MODEL],
    [
      'a worker row outlives its jobs',
      ' and not exists (select from rowlock.running r where r.worker_id = w.id)',
      '',
      engine('reap', 'a worker row goes when the last of its jobs is back, not before'),
    ],
    [
      'a claim in flight keeps its worker',
      'order by w.id for update skip locked',
      'order by w.id',
      engine('reap', 'a worker row whose claim is in flight stays until the sweep that sees what it took'),
    ],
    [
      'the reaper has a limit',
      `limit p_limit
`,
      `
`,
      faults('upkeep', 'the reaper stops at its limit'),
    ],
    [
      'the reaper reads the one clock',
      'v_now timestamptz := rowlock.now()',
      'v_now timestamptz := clock_timestamp()',
      MODEL,
    ],
    [
      'the reaper refuses another isolation',
      `perform rowlock.require_read_committed('reap');`,
      '',
      engine('claim', 'refusals verbs that look twice refuse repeatable read'),
    ],
    [
      'the reaper finds its day',
      'perform rowlock.ensure_days(v_now);',
      '',
      engine('history', 'a missing day of class 7 is made by every other verb that writes history'),
    ],
  ]),
  ...guardsOf('is_session_alive', [
    [
      'a session of another database is no handler’s',
      'where d.datname = current_database()',
      'where true',
      STATEMENT_FAILED,
    ],
    [
      'a process that serves no database is no session',
      `
      join pg_database d on d.oid = a.datid
     where d.datname = current_database()`,
      '',
      STATEMENT_FAILED,
    ],
    [
      'a process that nobody knows is no session',
      'p_pid is not null and exists',
      'p_pid is null or exists',
      STATEMENT_FAILED,
    ],
  ]),
  ...guardsOf('heartbeat', [
    [
      'the clock is read after the wait for the row',
      'perform from rowlock.worker w where w.id = p_worker_id for no key update;\n',
      '',
      engine(
        'reap',
        'a lease that is over is not brought back by a beat that waited for its row beyond its end',
      ),
    ],
    [
      'a lease that is over is lost for ever',
      `where w.id = p_worker_id and w.expires_at > v_now
`,
      `where w.id = p_worker_id
`,
      engine('reap', 'a lease that is over is over for ever: no heartbeat brings it back'),
    ],
    [
      'a worker hears of its own jobs only',
      'where r.worker_id = p_worker_id;',
      ';',
      engine('cancel', 'a running job is asked: the heartbeat of its worker brings it, and no other’s'),
    ],
    [
      'the eldest is on duty',
      '(w.started_at, w.id) < (v_started_at, p_worker_id) and',
      '',
      faults(
        'upkeep',
        'a worker that is the eldest is on duty; an elder whose lease is over is not waited for',
      ),
    ],
    [
      'an elder whose lease is over is not waited for',
      'p_worker_id) and w.expires_at > v_now',
      'p_worker_id)',
      faults(
        'upkeep',
        'a worker that is the eldest is on duty; an elder whose lease is over is not waited for',
      ),
    ],
  ]),
  ...guardsOf('retire', [
    [
      'a worker does not leave its claim behind',
      'perform 1 from rowlock.worker w where w.id = p_worker_id for update;',
      '',
      engine(
        'claim',
        'locks a heartbeat passes beside a claim in flight; the end of the worker waits and leaves no orphan',
      ),
    ],
    [
      'a worker with jobs stays on record',
      ' and not exists (select from rowlock.running r where r.worker_id = p_worker_id)',
      '',
      MODEL,
    ],
    [
      'retiring lengthens no lease',
      'least(w.expires_at, v_now)',
      'greatest(w.expires_at, v_now)',
      faults('upkeep', 'a worker that retires lengthens no lease, and takes its flags along'),
    ],
    [
      'who retires takes its flags along',
      'delete from rowlock.sleeper s where s.worker_id = p_worker_id;',
      '',
      faults('upkeep', 'a worker that retires lengthens no lease, and takes its flags along'),
    ],
  ]),
  ...guardsOf('sweep', [
    [
      'a request for a job that went back is heeded',
      `where not exists (select from rowlock.running r where r.id = c.job_id)
     order by`,
      `where false
     order by`,
      engine(
        'cancel',
        `a running job that goes back by fail { cause: 'Error' } ` +
          'while the request is in flight is cancelled by the next sweep',
      ),
    ],
    [
      'a request for a job that became a dead letter is heeded',
      'perform rowlock.discard(v_request.job_id, v_request.actor, v_request.reason);',
      '',
      engine(
        'cancel',
        `a running job that goes back by fail { cause: 'Error', dead: true } ` +
          'while the request is in flight is cancelled by the next sweep',
      ),
    ],
    [
      'a kept key goes when it is due',
      'where k.until <= v_now',
      'where false',
      faults('upkeep', 'the sweep frees kept keys that are due, and no others'),
    ],
    [
      'a key without an end stays',
      'where k.until <= v_now',
      'where k.until is null or k.until <= v_now',
      faults('upkeep', 'the sweep frees kept keys that are due, and no others'),
    ],
    [
      'flags of workers that are gone are lowered',
      'where not exists (select from rowlock.worker w where w.id = s.worker_id)',
      'where false',
      faults('upkeep', 'the sweep lowers the flags of workers that are gone, and drops old records'),
    ],
    [
      'the sweep skips waiting jobs that others hold',
      'where w.id = v_request.job_id for update skip locked',
      'where w.id = v_request.job_id for update',
      faults('upkeep', 'the sweep passes waiting jobs, dead letters and keys by that somebody holds'),
    ],
    [
      'the sweep skips dead letters that others hold',
      'where d.id = v_request.job_id for update skip locked',
      'where d.id = v_request.job_id for update',
      faults('upkeep', 'the sweep passes waiting jobs, dead letters and keys by that somebody holds'),
    ],
    [
      'the sweep skips keys that others hold',
      'order by k.queue, k.key limit p_limit for update skip locked',
      'order by k.queue, k.key limit p_limit for update',
      faults('upkeep', 'the sweep passes waiting jobs, dead letters and keys by that somebody holds'),
    ],
    [
      'a job that was claimed just now keeps its request',
      `       and not exists (select from rowlock.running r where r.id = c.job_id)
       and not exists (select from rowlock.dead_letter d where d.id = c.job_id);
  end loop`,
      `       and not exists (select from rowlock.dead_letter d where d.id = c.job_id);
  end loop`,
      faults('upkeep', 'the sweep leaves the request for a job that was claimed while it was at work'),
    ],
    [
      'old records of operators go',
      `o.at < v_now - interval '90 days'`,
      'false',
      faults('upkeep', 'the sweep lowers the flags of workers that are gone, and drops old records'),
    ],
  ]),
  ...guardsOf('make_days', [
    [
      'days are made by one at a time',
      `perform pg_advisory_xact_lock(rowlock.lock_key('days'));`,
      '',
      engine('history', 'days are made once, though many ask at once'),
    ],
  ]),
]
