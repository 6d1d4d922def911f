// The guards around the connection of a handler's transaction: who ends it, what its mark says, who gives it back.

import { mutantsOf } from './mutant.ts'

const test = (file: string, name: string) => `test/worker/${file}.test.ts › ${name}`

export const SESSION_GUARDS = mutantsOf({
  'src/worker/session.ts': [
    [
      'a transaction that has ended takes nothing more',
      'if (!this.#isOpen) throw',
      'if (false) throw',
      test('transaction', 'what a handler does with its transaction after its end is refused'),
    ],
    [
      'nobody ends what a process serves after the session',
      ' and extract(epoch from a.xact_start) = $2::text::numeric',
      ' and $2::text is not null',
      test(
        'session-end',
        'a session that is cut is ended at the server, not what its process serves by then',
      ),
    ],
    [
      'a session that is cut is ended at the server',
      'this.#ended ??= this.#terminate()\n  }\n\n  /** Resolves',
      '}\n\n  /** Resolves',
      test(
        'session-end',
        'a session that is cut is ended at the server, not what its process serves by then',
      ),
    ],
    [
      'an error after which the server goes on ends no session',
      'if (severity === undefined) return isConnectionError(error)',
      'if (isConnectionError(error)) return true',
      test(
        'session',
        'an error of a statement is no end of its session, whatever its code: 08006 of a foreign table',
      ),
    ],
  ],
  'src/worker/transaction.ts': [
    [
      'a mark goes before its session',
      'if (!session.isBroken) await letGo()',
      '',
      test(
        'session-end',
        'a connection that its pool ends between the rollback and the outcome is no session that died',
      ),
    ],
    [
      'a session that died leaves its mark',
      'if (!session.isBroken) await letGo()',
      'await letGo()',
      test(
        'session-end',
        'a session that the server ended leaves its mark: the reaper goes by it, though the lease lives',
      ),
    ],
  ],
  'src/worker/persist.ts': [
    [
      'what comes after the abort is given back',
      'if (isLate) discard?.(answer).catch(() => {})',
      'if (isLate) return',
      test('session-end', 'a session that comes after the abort goes back to its pool'),
    ],
  ],
})
