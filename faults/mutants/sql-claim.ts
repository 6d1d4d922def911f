// The guards of the claim.

import { engine, faults, guardsOf, MODEL } from './mutant.ts'

/** What few jobs have: each alone makes a row of all. */
const SPARSE = [
  ['tenant_id', 'a tenant'],
  ['dedupe_key', 'a dedupe key'],
  ['idempotency_key', 'an idempotency key'],
  ['metadata', 'metadata'],
  ['retried_from', 'a job that it retries'],
  ['expires_at', 'an end'],
] as const
const SPARSE_LIST = `w.tenant_id, w.dedupe_key, w.idempotency_key, w.metadata, w.retried_from, w.expires_at) = 0`
const WORKS = (name: string) => `test/worker/turns.test.ts › ${name}`
const tells = (what: string) =>
  engine('claim-row', `a claim tells of a job that has ${what} that and no more`)

export const CLAIM_GUARDS = [
  ...guardsOf('claim', [
    [
      'queues that share slots stand in their turns',
      'order by w.turn, random()',
      'order by random()',
      WORKS('by precedence nothing of a later queue is claimed while an earlier one has a due job'),
    ],
    [
      'queues that share slots take no more than there are',
      'least(v_want."limit", v_want.upto - ',
      'least(v_want."limit", 1000 - ',
      WORKS('by precedence one claim takes what the first has and fills up from the next'),
    ],
    [
      'rows that others hold are skipped',
      `limit v_left
                   for update skip locked`,
      `limit v_left
 for update`,
      engine('claim', 'locks rows that others hold are passed by, and found afterwards'),
    ],
    [
      'a suspect that others hold is skipped',
      `limit 1
           for update skip locked`,
      `limit 1
 for update`,
      faults('guards', 'a claim passes a suspect by that somebody holds though it has waited longest'),
    ],
    [
      'a head that others hold is skipped',
      `limit 1
                     for update skip locked`,
      `limit 1
 for update`,
      faults('guards', 'a claim passes a suspect by that somebody holds at the head of its line'),
    ],
    [
      'what is taken is locked first',
      `limit v_left
                   for update skip locked`,
      'limit v_left',
      engine('claim', 'locks rows that others hold are passed by, and found afterwards'),
    ],
    [
      'rows are found by one statement and moved by another',
      `limit v_left
                   for update skip locked) as s;`,
      `limit v_left
 for update skip locked) as s
          join rowlock.waiting t on t.ctid = s.ctid;`,
      engine('claim-row', 'a claim takes all that it locks, though others write to its rows meanwhile'),
    ],
    [
      'a claim needs a living lease',
      'and w.expires_at > v_now for key share',
      'for key share',
      engine('claim', 'refusals a worker whose lease is over claims nothing'),
    ],
    [
      'a claim holds its worker',
      'w.expires_at > v_now for key share',
      'w.expires_at > v_now',
      engine(
        'claim',
        'locks a heartbeat passes beside a claim in flight; the end of the worker waits and leaves no orphan',
      ),
    ],
    [
      'the oldest of a line comes first',
      `order by w.available_at, w.id
                 limit v_left`,
      `order by w.available_at desc, w.id desc
                 limit v_left`,
      engine('claim', 'lines inside a line the oldest comes first, and of one instant the lowest id'),
    ],
    [
      'a limit is no suggestion',
      `limit v_left
`,
      `limit v_left + 1
`,
      engine('claim', 'bounds a limit of 2 is met exactly'),
    ],
    [
      'a limit has a limit',
      'least(coalesce(w."limit", 0), 1000)',
      'coalesce(w."limit", 0)',
      engine('claim', 'bounds no claim takes more than 1,000, whatever it asks for'),
    ],
    ['a suspect is claimed alone', 'and w.losses < 2', '', MODEL],
    [
      'nothing is claimed beside a suspect',
      'exit when v_left <= 0 or v_alone',
      'exit when v_left <= 0',
      MODEL,
    ],
    [
      'a queue that gave a suspect has yielded',
      `jsonb_build_object(v_want.queue, 1);
      exit;`,
      'v_found;',
      faults('guards', 'a claim of a suspect says which queue yielded, and lowers its flag'),
    ],
    [
      'a suspect that waits long enough goes first',
      'random() < 0.25',
      'false',
      engine(
        'suspect',
        'a suspect that waited longer than its queue promises soon goes first, whatever stands above it',
      ),
    ],
    [
      'a suspect of a foreign kind is left',
      'and w.losses >= 2 and w.kind = any (v_want.kinds)',
      'and w.losses >= 2',
      faults('guards', 'a claim takes no suspect of a kind that it did not name'),
    ],
    [
      'an expired suspect is not run',
      'where h.losses >= 2 and (h.expires_at is null or h.expires_at > v_now)',
      'where h.losses >= 2',
      faults('guards', 'a claim runs no expired suspect at the head of its line'),
    ],
    [
      'an expired suspect does not go first',
      `interval '1 minute')
           and (w.expires_at is null or w.expires_at > v_now)`,
      `interval '1 minute')`,
      faults('guards', 'a claim runs no expired suspect that waited long'),
    ],
    ['suspects can be passed by', 'v_want.alone is not false and exists', 'exists', MODEL],
    [
      'priority comes before age',
      'order by l.priority desc, l.available_at',
      'order by l.available_at',
      engine('claim', 'lines higher priority comes first, whatever its age'),
    ],
    [
      'among kinds the older head comes first',
      'order by l.priority desc, l.available_at',
      'order by l.priority desc',
      engine('claim', 'lines among kinds of one priority the one whose head has waited longest comes first'),
    ],
    [
      'a look hops over no line',
      'w.priority < l.priority',
      'w.priority < l.priority - 1',
      engine('claim', 'lines every priority of a kind is seen from the beginning'),
    ],
    [
      'a look hops among lines of its own kind',
      `w.queue = v_want.queue and w.kind = l.kind
                           and w.priority < l.priority`,
      `w.queue = v_want.queue
                           and w.priority < l.priority`,
      engine('claim', 'bounds a scheduled job is not taken before its time, and next_due says when that is'),
    ],
    [
      'from its frontier a claim looks at each priority',
      'and w.priority < l.priority and w.priority > coalesce(f.priority, -11)',
      'and w.priority < l.priority and f.priority is null',
      engine('claim', 'lines every priority of a kind is seen from a frontier'),
    ],
    ['a paused queue is not claimed', 'where q.paused_at is null', 'where true', MODEL],
    [
      'what is not due is not claimed',
      `and w.available_at <= v_now
                   and (w.available_at, w.id) >= (v_line.from_at, v_line.from_id)
                   and w.losses < 2`,
      `and (w.available_at, w.id) >= (v_line.from_at, v_line.from_id)
                   and w.losses < 2`,
      engine('claim', 'bounds a scheduled job behind due ones of its line is not taken with them'),
    ],
    [
      'a line begins at its frontier',
      'and (w.available_at, w.id) >= (f.at, f.id)',
      '',
      engine('claim', 'bounds the frontier is where a line is looked at from, by instant and then by id'),
    ],
    [
      'the next due job is the first of all',
      'least(v_next_due, v_line.available_at)',
      'v_line.available_at',
      faults('guards', 'a claim says when the first of all its lines is due'),
    ],
    ['an expired job is not run', 'if v_expired then', 'if false then', MODEL],
    [
      'behind expired jobs the claim goes on',
      'exit when v_expired is not true',
      'exit',
      engine('expire', 'jobs too late that stand between others cost the claim none of its limit'),
    ],
    [
      'a claim is committed durably',
      'perform rowlock.commit_durably();',
      '',
      engine('durable', 'a claim waits for the disk though the database is set not to'),
    ],
    [
      'a claim refuses another isolation',
      `perform rowlock.require_read_committed('claim');`,
      '',
      engine('claim', 'refusals verbs that look twice refuse repeatable read'),
    ],
    [
      'a claim reads the one clock',
      'v_now timestamptz := rowlock.now()',
      'v_now timestamptz := clock_timestamp()',
      MODEL,
    ],
    ['each claim raises the attempt', 'least(w.attempt, 2147483646) + 1', 'greatest(w.attempt, 1)', MODEL],
    [
      'the attempt has room for ever',
      'least(w.attempt, 2147483646) + 1',
      'w.attempt + 1',
      engine(
        'extremes',
        'a row of the extreme attempt = 2147483647: all ends well, and its neighbours with it',
      ),
    ],
    [
      'each claim has a fence of its own',
      'v_claim_id uuid := gen_random_uuid()',
      'v_claim_id uuid := p_worker_id',
      engine('claim', 'lines each claim has a claim_id of its own and counts an attempt'),
    ],
    [
      'a queue that yields loses its flag',
      'p_worker_id and v_found ? s.queue',
      'p_worker_id and false',
      faults('guards', 'a claim lowers the flag of a queue that yields, and keeps the others up'),
    ],
    [
      'a claim tells of losses',
      'w.losses = 0 and w.input is not null',
      'w.input is not null',
      tells('a loss'),
    ],
    [
      'a claim tells that an input lies elsewhere',
      'w.losses = 0 and w.input is not null',
      'w.losses = 0',
      tells('an input elsewhere'),
    ],
    [
      'a claim tells of a timeout',
      'rowlock.length_ms(g.timeout) as timeout',
      'null as timeout',
      tells('a timeout'),
    ],
    [
      'a claim tells of a most of attempts',
      'as timeout, g.max_attempts,',
      'as timeout, null as max_attempts,',
      tells('a most of attempts'),
    ],
    [
      'jobs are answered together only where the caller reads that',
      `coalesce(p_wants #> '{0,alike}' = 'true', false)`,
      'true',
      engine('claim-row', 'a caller that does not say so is answered row by row, each with all fields'),
    ],
    [
      'behind a place with nothing after it lower priorities are looked at',
      'select f.priority, null, null where f.priority is not null',
      'select f.priority, null, null where false',
      engine(
        'claim-row',
        'what a frontier names hides nothing: as many jobs are found as a naive look finds',
      ),
    ],
    ...SPARSE.map(
      ([column, what]) =>
        [
          `a claim tells of ${what}`,
          SPARSE_LIST,
          SPARSE_LIST.replace(`w.${column}`, 'null::text'),
          tells(what),
        ] as const,
    ),
    [
      'a claim visits a bounded number of lines',
      'if v_lines >= 400 then',
      'if false then',
      engine('expire', 'beyond the bound of one claim the claim says that there is more'),
    ],
    [
      'a claim reads by index',
      'set enable_seqscan = off',
      'set enable_seqscan = on',
      engine(
        'plan',
        'plans of a claim: heads and rows come from the dispatch index in its order and are found by place',
      ),
    ],
  ]),
]
