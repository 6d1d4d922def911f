// The guards of what people are told when they look.

import { engine, guardsOf, mutantsOf } from './mutant.ts'

const why = (name: string) => engine('why', `a job that waits ${name}`)
const begun = (name: string) => engine('why-begun', `a job that runs ${name}`)
const timeouts = (name: string) => `test/worker/timeout.test.ts › ${name}`
const NO_HOLDER = engine(
  'why-locked',
  'a number that a transaction elsewhere has as well makes no holder of it',
)
const STATEMENTS = engine(
  'why-locked',
  'what a session says is told to members of its role, and to whom PostgreSQL shows all',
)
const OLDER_RELEASE = why('and its queue is set to other slots than a worker of an older release follows')
const COMES_FIRST = why('behind others: in its line, of other kinds that wait longer, and of higher priority')
const DEAF = why('for handlers that ignored their signal hold the slots, or a job that runs alone')

export const LOOKS_GUARDS = [
  ...guardsOf('row_holders', [
    [
      'nobody reads the statements of others',
      `and (pg_has_role(session_user, a.usesysid, 'usage')`,
      `and (true or pg_has_role(session_user, a.usesysid, 'usage')`,
      STATEMENTS,
    ],
    [
      'who reads statements is who asks, and not the owner of the function',
      `and (pg_has_role(session_user, a.usesysid, 'usage')`,
      `and (pg_has_role(current_user, a.usesysid, 'usage')`,
      STATEMENTS,
    ],
    ['a holder has a lock on the table', 'and t.relation = p_table and', 'and', NO_HOLDER],
    [
      'who only reads is no holder',
      `t.relation = p_table and t.mode <> 'AccessShareLock'`,
      'true',
      NO_HOLDER,
    ],
    [
      'each look is a new one',
      'perform pg_stat_clear_snapshot();',
      '',
      engine('why-locked', 'to ask sees anew what other sessions do, within one transaction'),
    ],
  ]),
  ...guardsOf('slots_of', [
    [
      'what a worker told of its slots counts',
      `rowlock.figure(p_told, 'concurrency'),`,
      'null,',
      OLDER_RELEASE,
    ],
    [
      'a worker of an older release follows no setting',
      `case when jsonb_typeof(p_told) = 'object' then p_set end`,
      'p_set',
      OLDER_RELEASE,
    ],
  ]),
  ...guardsOf('why_unclaimed', [
    ['slots of deaf handlers are taken', 'c.held + c.stuck >= c.slots', 'c.held >= c.slots', DEAF],
    [
      'what is held otherwise is not due',
      'if not found and not p_is_held and',
      'if not found and',
      why('though it was asked to be cancelled while it ran'),
    ],
  ]),
  ...guardsOf('why_behind', [
    [
      'what waits in lines behind takes no room in the count',
      'and (l.priority > v_job.priority or (l.priority = v_job.priority and l.kind <> v_job.kind))',
      'and (l.priority, l.kind) <> (v_job.priority, v_job.kind)',
      why('behind a few, whatever waits in lines that do not come first'),
    ],
    [
      'a suspect before it in its line does not come first',
      'w.priority = v_job.priority and w.losses < 2',
      'w.priority = v_job.priority',
      COMES_FIRST,
    ],
    [
      'a suspect in another line does not come first',
      'w.priority = l.priority and w.losses < 2',
      'w.priority = l.priority',
      COMES_FIRST,
    ],
    ['foreign kinds do not come first', 'where l.kind = any (v_kinds)', 'where true', COMES_FIRST],
  ]),
  ...guardsOf('why_waiting', [
    [
      'what has expired is not due',
      'if v_job.expires_at <= p_now then',
      'if false then',
      why('and has expired: it is to be cancelled, and nothing else is said of it but who has its row'),
    ],
  ]),
  ...guardsOf('holding', [
    [
      'the timeout of a kind is what its worker told',
      `rowlock.figure(w.facts -> 'timeouts', r.kind) * interval '1 ms',`,
      '',
      begun('beyond the timeout of its kind, as its worker told it; a job within it is accused of nothing'),
    ],
    [
      'what no worker told is not claimed',
      `coalesce(jsonb_typeof(w.facts -> 'timeouts') = 'object', false)`,
      'true',
      begun(
        'beyond the default, on a worker that does not tell the timeouts of its kinds: nothing is claimed',
      ),
    ],
  ]),
  ...mutantsOf({
    'src/worker/worker.ts': [
      [
        'a deaf handler is told of at once',
        `this.#announce('stuck', { jobId, kind, stuck })
    this.#heartbeat.nudge()`,
        `this.#announce('stuck', { jobId, kind, stuck })`,
        timeouts(
          'a deaf handler is told of at once, and who waits for its slot learns which worker to restart',
        ),
      ],
    ],
    'src/worker/facts.ts': [
      [
        'a worker tells the timeouts of its kinds',
        'timeouts: ownTimeouts(handlers),',
        'timeouts: {},',
        timeouts('a job within the timeout of its kind is accused of nothing, for its worker tells that'),
      ],
    ],
  }),
]
