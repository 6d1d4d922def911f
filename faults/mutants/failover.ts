// The guards of failover: which host is taken, what a wrong connection is worth, what is looked for then.

import { type FileGuards, mutantsOf } from './mutant.ts'

const test = (file: string, name: string) => `test/${file}.test.ts › ${name}`
const several = (name: string) => test('engine/several-hosts', name)

const GUARDS: FileGuards = {
  'src/engine/hosts.ts': [
    [
      'several hosts must be writable',
      `wanted === '' ? 'read-write' : (wanted as Wanted)`,
      `wanted === '' ? 'any' : (wanted as Wanted)`,
      test(
        'engine/hosts',
        'several hosts must be writable, unless the address says otherwise; one host when it says so',
      ),
    ],
    [
      'what no worker can use is refused',
      `wanted !== '' && !WANTED.includes(wanted)`,
      'false',
      test(
        'engine/hosts',
        'what no host can be made of is refused: postgres://a,b/shop?target_session_attrs=standby',
      ),
    ],
  ],
  'src/engine/hosts-client.ts': [
    [
      'a standby is not taken',
      `if (is?.standby) throw`,
      'if (false) throw',
      several('one host that must be writable is asked too'),
    ],
    [
      'a server that is set to read only is not taken',
      `if (is?.readOnly && wanted === 'read-write') throw`,
      'if (false) throw',
      several('a server that is set to read only is a primary, and not writable'),
    ],
    [
      'a primary need not be writable where only that is asked',
      `is?.readOnly && wanted === 'read-write'`,
      'is?.readOnly',
      several('a server that is set to read only is a primary, and not writable'),
    ],
    [
      'any host will do where that is said',
      `if (wanted === 'any') return`,
      '',
      several('any host will do where that is said'),
    ],
    [
      'the host that was taken last is first',
      'hosts.last = which',
      '',
      several('the host that was taken last is tried first, by every lane'),
    ],
    [
      'a host has a share of the time',
      '(ms * SHARED) / targets.length',
      'ms * 2',
      several('a host that never answers costs its share of the time to connect'),
    ],
    [
      'what breaks while a host is asked is nobody else’s',
      `this.on('error', ignore)`,
      '',
      several('what breaks while a host is asked is heard, and by nobody else'),
    ],
    [
      'what was passed by is let go of',
      'connection.stream.destroy()',
      '',
      several(
        'a standby is asked once, and let go of; the error names each host with its reason, and no password',
      ),
    ],
    [
      'wrong passwords everywhere are told as such',
      'failures.every((error) => notLetIn(error)) ? failures[0] : undefined',
      'undefined',
      several('wrong passwords everywhere are for a person to mend'),
    ],
  ],
  'src/engine/database.ts': [
    [
      'a lane that has ended opens nothing more',
      'if (isCut) setImmediate(() => socket.destroy())',
      '',
      several('a lane that ends while it looks for a host leaves nothing open'),
    ],
  ],
  'src/engine/translate.ts': [
    [
      'a connection to a standby is no good',
      '/^57P0/.test(code) || isReadOnly(error)',
      '/^57P0/.test(code)',
      test(
        'engine/standby',
        'a connection to a standby is not used again: the next one may lead to the new primary',
      ),
    ],
  ],
  'src/worker/fetcher.ts': [
    [
      'who has no lease looks for no orphans',
      'lease.workerId === undefined ? leftMs :',
      '',
      test('worker/orphans', 'who has no lease looks for none, however long ago the last look was'),
    ],
    [
      'a server that was away is a doubt',
      'if (isPassing(error)) this',
      `if (isPassing(error) && !isRowlockError(error, 'DATABASE_UNAVAILABLE')) this`,
      test('worker/orphans', 'a server that is away is a doubt too: it may be another when it is back'),
    ],
  ],
  'src/worker/orphans.ts': [
    [
      'an orphan is seen twice',
      'first.length === 0 ? [] : await this.#unknown(workerId)',
      'first',
      test('worker/orphans', 'a job that ended while the answer was on its way is no orphan'),
    ],
    [
      'an orphan is seen twice under one claim',
      'claims.has(`$' + '{claimId} $' + '{id}`)',
      'true',
      test('worker/orphans', 'another claim of the same job is no orphan before it was seen twice'),
    ],
    [
      'orphans are looked for without a doubt',
      ': this.#options.everyMs\n',
      ': Number.POSITIVE_INFINITY\n',
      test('worker/orphans', 'it is looked as often as the net is cast, and when there is a doubt'),
    ],
  ],
}

export const FAILOVER_GUARDS = mutantsOf(GUARDS)
