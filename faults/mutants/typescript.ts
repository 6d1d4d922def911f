// The guards of TypeScript, by hand: leases and fences in a worker, outcomes that are unknown, what is refused early.

import { type FileGuards, mutantsOf } from './mutant.ts'

const test = (file: string, name: string) => `test/${file}.test.ts › ${name}`

const WORKER: FileGuards = {
  'src/worker/lease.ts': [
    [
      'a lease runs from the question',
      'this.#until = sentAt + this.#leaseMs',
      'this.#until = performance.now() + this.#leaseMs',
      test('worker/lease', 'a lease counts from the moment the question was sent, not from its answer'),
    ],
    [
      'a lease has an end',
      ' && performance.now() < this.#until',
      '',
      test('worker/lease', 'a lease that runs out is lost once, by itself'),
    ],
    [
      'a lease that was ended is not granted again',
      '    if (this.#ended) return\n',
      '',
      test('worker/lease', 'after the end no late answer brings it back, and nobody is told'),
    ],
    [
      'a timer that fires early watches on',
      'if (this.holds) this.#watch()',
      'if (this.holds) return',
      test('worker/lease', 'a timer that fires before its time is no end, and not the last one'),
    ],
    [
      'an identity is random',
      'return randomUUID()',
      `return '6f0f4c6e-26b8-4b8c-9d5c-3f0b1a5d7e11'`,
      test('worker/lease', 'each identity is new'),
    ],
  ],
  'src/worker/reporter.ts': [
    [
      'refused outcomes count as piled up',
      'this.#pending.length + this.#refused.size >=',
      'this.#pending.length >=',
      test('worker/reporter', 'outcomes that are refused in every form count as piled up'),
    ],
    [
      'a refused outcome is told from its batch',
      'if (isRefusal(error)) return this.#divide(batch, error)',
      '',
      test(
        'worker/reporter',
        'one completion that is refused for good (23514) holds up none of the others, and ends as a failure',
      ),
    ],
    [
      'what is refused for the moment is tried again',
      '/^(22|23|',
      '/^(22|23|40|',
      test(
        'worker/reporter',
        'an outcome that is refused for the moment (40001) is tried again, and is no failure',
      ),
    ],
    [
      'a repeat after a lost answer asks what was written',
      'const written = isDoubtful',
      'const written = !isDoubtful',
      test(
        'worker/outage',
        'an answer that is lost of a completion: it is repeated, counts once, and is not called lost',
      ),
    ],
    [
      'a batch is bounded by bytes',
      '(bytes > LIMITS.bytesPerCall.max || length',
      '(length',
      test('worker/reporter', 'no statement is larger than one call may be, however large the results'),
    ],
  ],
  'src/worker/runner.ts': [
    [
      'a shutdown is no failure',
      `if (aborted === 'shutdown' && !permanent)`,
      'if (false)',
      test(
        'worker/stop',
        'draining after the grace a handler is aborted and its job handed back, without a failure',
      ),
    ],
    [
      'a timeout is called one',
      `outcome: isTimeout ? 'timed_out' : 'failed'`,
      `outcome: 'failed'`,
      test('worker/timeout', 'at its timeout a handler is told why, and what it throws then is a timeout'),
    ],
    [
      'a permanent error is final',
      'isPermanent(thrown) || invalid.has',
      'invalid.has',
      test('worker/failing', 'a permanent error is not retried'),
    ],
  ],
  'src/worker/fetcher.ts': [
    [
      'nothing is claimed while outcomes pile up',
      'if (isHeld()) return this.#pollMs()',
      '',
      test('worker/reporter', 'while outcomes pile up nothing more is claimed'),
    ],
    [
      'a claim whose answer was lost is looked for',
      `this.#options.orphans.doubt()`,
      '{}',
      test(
        'worker/outage',
        'an answer that is lost of a claim: its jobs are found and given back while the worker lives on',
      ),
    ],
  ],
  'src/worker/slots.ts': [
    [
      'queues that share have no more slots than there are',
      'this.#shared - this.running - this.prefetched',
      'this.#shared - this.prefetched',
      test(
        'worker/turns',
        'a worker runs as many as it has shared slots, in transactions too, and nothing is claimed ahead',
      ),
    ],
    [
      'a concurrency is followed up to the shared slots',
      'own.concurrency, this.#shared)',
      'own.concurrency, 1_000)',
      test('worker/turns', 'a worker follows a concurrency of a queue up to its slots'),
    ],
  ],
  'src/worker/turns.ts': [
    [
      'the queue that used least of its share is next',
      'turn.used < next.used',
      'turn.used > next.used',
      test('worker/turns', 'in turns by weight one, two and four share to within a start, slot by slot'),
    ],
    [
      'a start counts by its weight',
      'share.used += got / share.weight',
      'share.used += got',
      test(
        'worker/turns',
        'in turns by weight three to one is three starts to one, however many slots are free at a time',
      ),
    ],
    [
      'who has no turn is looked into last',
      'quota === 0 ? 2 : isIdle ? 0 : 1',
      'isIdle ? 0 : 1',
      test(
        'worker/turns',
        'in turns by weight a queue without a turn now is looked into before the worker believes that ' +
          'nothing is there',
      ),
    ],
    [
      'who had nothing is looked into first',
      'isIdle ? 0 : 1)',
      '1)',
      test(
        'worker/turns',
        'in turns by weight no slot is idle while any queue has work, and what one leaves is the others’',
      ),
    ],
    [
      'turns are not saved up',
      'anew.has(queue) ? Math.max(0, share.used - least) : share.used - least',
      'share.used - least',
      test(
        'worker/turns',
        'in turns by weight a queue that is full by its own concurrency leaves its turns, and saves none up',
      ),
    ],
    [
      'who was not looked into keeps its turn',
      'if (could <= 0 || !share.isIdle) anew.delete(queue)',
      'if (!share.isIdle) anew.delete(queue)',
      test(
        'worker/turns',
        'in turns by weight a queue that had no work saves no turns up, and one that used the slots of ' +
          'others owes none',
      ),
    ],
  ],
  'src/worker/orphans.ts': [
    [
      'what is known is no orphan',
      'held.filter((job) => !isKnown(job))',
      'held',
      test('worker/orphans', 'a job that the process knows is no orphan'),
    ],
  ],
  'src/worker/runs.ts': [
    [
      'who was asked to stop has its time',
      `run.abortCause === 'cancelled' ? Math.max(run.abortedAt, run.deadlineAt) : run.abortedAt`,
      'run.abortedAt',
      test('worker/cancel', 'one that does not listen to its signal is waited for until its timeout'),
    ],
  ],
  'src/worker/frontier.ts': [
    [
      'only slow looks are put off',
      'SLOW_FACTOR = 3',
      'SLOW_FACTOR = 30',
      test(
        'worker/frontier',
        'a frontier only a look above three times a normal one puts the next full look off',
      ),
    ],
    [
      'the frontier trails',
      'TRAIL_MS = 250',
      'TRAIL_MS = 0',
      test(
        'worker/frontier',
        'a frontier in between it begins where it stood 250 ms ago, by the time of the claim',
      ),
    ],
    [
      'a full look is put off for a second at most',
      'PAUSE_MAX_MS = 1_000',
      'PAUSE_MAX_MS = 10_000',
      test('worker/frontier', 'a frontier by twenty times its cost, and by a second at the most'),
    ],
  ],
  'src/engine/database.ts': [
    [
      'a write whose answer was lost is unknown',
      'if (broken && options.write !== undefined) throw',
      'if (false) throw',
      test(
        'client/unknown',
        'a connection that breaks after the job was stored, before the answer came, ' +
          'is OUTCOME_UNKNOWN; the repeat finds it',
      ),
    ],
    [
      'a transaction of ours is not idle for ever',
      'Math.ceil(options.idleMs ?? this.#timeoutMs(options))',
      '0',
      test(
        'faults/idle-transactions',
        'each transaction of ours says how long it may be idle, and the session keeps nothing of it',
      ),
    ],
    [
      'how long it may be idle ends with it',
      'set local idle_in',
      'set idle_in',
      test(
        'faults/idle-transactions',
        'each transaction of ours says how long it may be idle, and the session keeps nothing of it',
      ),
    ],
  ],
  'src/engine/enqueue.ts': [
    [
      'a source may pause',
      ', idleMs: LIMITS.sourceIdleMs.max',
      '',
      test(
        'faults/idle-transactions',
        'each transaction of ours says how long it may be idle, and the session keeps nothing of it',
      ),
    ],
  ],
}

const GROUND: FileGuards = {
  'src/ground/duration.ts': [
    [
      'a duration has a longest',
      'ms >= min && ms <= max',
      'ms >= min',
      test('ground/duration', 'a duration of 1e+300 is refused'),
    ],
    [
      'a duration has a shortest',
      'ms >= min && ms <= max',
      'ms <= max',
      test('ground/duration', 'a duration of -1 is refused'),
    ],
    [
      'a duration has nothing behind its unit',
      '(ms|s|m|h|d)$/',
      '(ms|s|m|h|d)/',
      test('ground/duration', `a duration of '5s ' is refused`),
    ],
    [
      'a duration is whole',
      'return Math.round(ms) + 0',
      'return ms',
      test('ground/duration', 'a duration 1.5 is 2 ms'),
    ],
  ],
  'src/ground/storable.ts': [
    [
      'a cycle is refused',
      'if (cycle >= 0) throw',
      'if (false) throw',
      test(
        'ground/json',
        'a value that jsonb cannot hold faithfully ' +
          'because it refers back to itself is refused with both ends of the cycle',
      ),
    ],
    [
      'depth has an end',
      'this.#around.length >= LIMITS.inputDepth.max',
      'false',
      test('ground/json', 'a value that jsonb can hold has at most 500 levels'),
    ],
    [
      'NUL is refused',
      'if (nul >= 0)',
      'if (false)',
      test(
        'ground/json',
        'a value that jsonb cannot hold faithfully is refused with its path, what was found and what to do (25)',
      ),
    ],
    [
      'half of a character is refused',
      'if (half < 0) return',
      'return',
      test(
        'ground/json',
        'a value that jsonb cannot hold faithfully is refused with its path, what was found and what to do (26)',
      ),
    ],
    [
      '__proto__ is a key',
      'Object.create(null)',
      '{}',
      test(
        'ground/json',
        'a value that jsonb can hold keeps __proto__ as a key like any other, and pollutes nothing',
      ),
    ],
    [
      'a number is finite',
      'if (!Number.isFinite(value))',
      'if (false)',
      test(
        'ground/json',
        'a value that jsonb cannot hold faithfully is refused with its path, what was found and what to do (1)',
      ),
    ],
  ],
  'src/ground/text.ts': [
    [
      'NUL is shown as lost',
      `text.replaceAll('\\0', '\\uFFFD').replace`,
      'text.replace',
      test('ground/text', 'text has U+FFFD for each NUL and each half of a pair, and is storable then'),
    ],
    [
      'text is cut on code points',
      'text.slice(0, read) +',
      'text.slice(0, room) +',
      test('ground/text', 'text is cut on code points, within its bytes, to what it began with'),
    ],
  ],
}

export const TYPESCRIPT_GUARDS = [...mutantsOf(WORKER), ...mutantsOf(GROUND)]
