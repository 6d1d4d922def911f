// The guards of a queue's limits.

import { engine, guardsOf, type Mutant, mutantsOf } from './mutant.ts'

const running = (name: string) => engine('max-running', `a limit on running jobs ${name}`)
const told = (name: string) => engine('max-running', `a worker that found a queue full ${name}`)
const rate = (name: string) => engine('rate', `a rate ${name}`)
const fault = (asked: string, path: string) =>
  engine('settings', `queue "q" with ${asked} is refused, and ${path} named`)
const worker = (name: string) => `test/worker/limits.test.ts › ${name}`

export const LIMITS_GUARDS: readonly Mutant[] = [
  ...guardsOf('admit', [
    [
      'one claim of a limited queue after the other',
      ' for no key update skip locked;',
      ';',
      running('of 1 is never exceeded by eight workers that claim and finish at once'),
    ],
    [
      'what the claim took already counts',
      '- v_running - p_taken,',
      '- v_running,',
      running('holds for each queue of a claim by itself'),
    ],
    [
      'jobs without a number are counted until there are none',
      'if v_uncounted = 0 and (',
      'if (',
      running('counts jobs that ran before it was set'),
    ],
    [
      'claims that may not know of the limit are waited for',
      'if rowlock.older_claims(v_throttle.mark) then',
      'if false then',
      running('counts what a claim took that was on its way when it was set'),
    ],
    [
      'the floor follows what runs',
      '>= v_throttle.floor + 64',
      '>= v_throttle.floor + 640000',
      engine(
        'max-running',
        'what a limit costs is a count from a floor: jobs that died under an old snapshot are not waded through',
      ),
    ],
    [
      'nothing that runs is below the floor',
      'floor = coalesce(v_first, no, t.floor)',
      'floor = coalesce(no, v_first, t.floor)',
      running('counts a job that runs for long, however many come and go beside it'),
    ],
    [
      'a claim has its instant when it has the lock',
      'at := rowlock.now();',
      'at := statement_timestamp();',
      running('of 1 is never exceeded by eight workers that claim and finish at once'),
    ],
    [
      'no more is owed than a burst',
      'if v_throttle.paid_at > v_full_at then',
      'if false then',
      rate('goes on where the clock steps back, and makes up for nothing where it steps ahead'),
    ],
  ]),
  ...guardsOf('older_claims', [
    [
      'only claims are waited for',
      `l.relation = 'rowlock.worker'::regclass and `,
      '',
      running('is not held up by an old transaction that claims nothing'),
    ],
  ]),
  ...guardsOf('note_starts', [
    [
      'each start is paid for',
      'p_taken + rowlock.rate_debt(',
      '1 + rowlock.rate_debt(',
      rate('lets its burst start at once, then one after the other, and says when'),
    ],
    [
      'nobody is told of room that was taken',
      'elsif p_room > p_taken and p_is_awaited then',
      'elsif p_is_awaited then',
      told('is told nothing while the others take what is free, which costs no write of it'),
    ],
    [
      'others are told of room that is left',
      `perform rowlock.wake(array[p_queue], '-infinity');`,
      '',
      told('is told when a look leaves room: what waits is of a kind that the others do not handle'),
    ],
    [
      'who was sent away looks again',
      `v_next_at := p_now + interval '1 s';`,
      '',
      running('that is reached is looked at again in a second, for whoever ends a job looks at once'),
    ],
  ]),
  ...guardsOf('claim', [
    [
      'a pass that lets none in does not take the number of those before',
      `if v_left > 0 then
        v_passes`,
      `if true then
        v_passes`,
      running('holds for each queue of a claim by itself'),
    ],
    [
      'a claim is full only where each of its queues is',
      '    v_is_full := v_is_full and v_want.is_limited;\n',
      '',
      running('holds for each queue of a claim by itself'),
    ],
    [
      'a worker without a slot of its own tells others of room',
      'v_want.upto <= v_before and not v_want.is_limited',
      'v_want.upto <= v_before',
      told('is told by a look that leaves room for want of a slot of its own'),
    ],
    [
      'the next start matters only where something is due',
      `      if v_is_due then
        v_next_due := least(v_next_due, v_due_at);`,
      `      if true then
        v_next_due := least(v_next_due, v_due_at);`,
      rate('says nothing of the next start where nothing is due'),
    ],
  ]),
  ...guardsOf('set_queue', [
    [
      'a limit that is set waits for claims on their way',
      `if v_running <> 'null' or v_rate <> 'null' then`,
      `if v_before.max_running is null and v_running <> 'null' or v_rate <> 'null' then`,
      running('waits for a claim on its way when it is lowered'),
    ],
    [
      'jobs that ran without a limit are counted when there is one again',
      'is_settled = t.is_settled and v_before.max_running is not null',
      'is_settled = t.is_settled',
      running('can be raised, lowered, taken away and set again while jobs run'),
    ],
    [
      'sleepers are told of another limit',
      `perform rowlock.wake(array[p_queue], '-infinity');`,
      '',
      told('is told when the limit is raised or taken away'),
    ],
  ]),
  ...guardsOf('limits_fault', [
    [
      'a limit has bounds',
      'rowlock.is_whole(v_running, 1, 100000)',
      'rowlock.is_whole(v_running, 0, 100000)',
      fault('{"max_running":0}', 'max_running'),
    ],
    [
      'a rate says in which time',
      `between interval '1 ms' and interval '30 days') is not true then`,
      `between interval '1 ms' and interval '30 days') is false then`,
      fault('{"rate":{"starts":1}}', 'rate.per'),
    ],
    [
      'a word for what is full needs a bound',
      `else v_waiting <> 'null' end) then`,
      'else true end) then',
      fault('{"max_waiting":null,"when_full":"drop"}', 'when_full'),
    ],
  ]),
  ...guardsOf('why_limited', [
    [
      'a limit that is reached is a reason',
      'if v_running >= v_queue.max_running then',
      'if v_running > v_queue.max_running then',
      engine(
        'why-limited',
        'a job waits for as many of its queue run as may: it names them, their workers, and what to type',
      ),
    ],
    [
      'what is not due waits for no limit',
      ' and w.available_at <= p_now;',
      ';',
      engine(
        'why-limited',
        'a job waits for nothing of the limits where it is not due, or no limit is reached',
      ),
    ],
  ]),
  ...guardsOf('served_settings', [
    [
      'workers are told which queues are limited',
      'num_nonnulls(q.max_running, q.rate_starts) > 0)',
      'false)',
      worker(
        'a limit on running jobs claims nothing ahead of a free slot, and gives back what was, when it is set',
      ),
    ],
  ]),
  ...mutantsOf({
    'src/worker/slots.ts': [
      [
        'a limited queue has no prefetch',
        'limited ? 0 : own.hasOwnPrefetch',
        'own.hasOwnPrefetch',
        worker('a limited queue has no prefetch, whatever its worker was started with'),
      ],
    ],
    'src/worker/fetcher.ts': [
      [
        'a full queue is not looked at before a job ends',
        'claimed.isFull ? this.#untilDue(claimed, this.#pollMs()) : 0',
        '0',
        worker('a limit on running jobs takes one claim between the end of a job and the next start'),
      ],
    ],
    'src/worker/crew.ts': [
      [
        'a limited queue is looked at when the outcome is written',
        '!this.slots.isLimited(job.queue) || this.#options.reporter.open === 0',
        'true',
        worker('a limit on running jobs takes one claim between the end of a job and the next start'),
      ],
    ],
  }),
]
