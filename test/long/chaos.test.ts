// Ten long runs of the chaos loop, each with a fresh seed, on a server of its own and at the bounds that are promised;
// and one in which the reaper is broken on purpose, without any fault beside it. ROWLOCK_LONG=1 (`./check --long`).

import { createRowlock } from 'rowlock'
import { expect, test } from 'vitest'
import { type Account, accountOf, badFigures, writeEvidence } from '../../faults/account.ts'
import { BOUND_MS, type ChaosOptions, type ChaosResult, runChaos } from '../../faults/chaos.ts'
import { startCluster } from '../../faults/cluster.ts'
import { seedOf } from '../engine/by-hand.ts'
import { IS_LONG } from '../support/long.ts'
import { ROOT } from '../support/tree.ts'

const RUNS = 10
const SECONDS = 120

interface Run {
  readonly result: ChaosResult
  readonly account: Account
}

async function runOf(seconds: number, seed: number, options: Partial<ChaosOptions> = {}): Promise<Run> {
  const cluster = await startCluster()
  try {
    const rowlock = createRowlock({ connectionString: cluster.url })
    await rowlock.migrate()
    await rowlock.close()
    const { url, restart, complaints } = cluster
    const result = await runChaos({ seconds, seed, url, restart, complaints, ...options })
    return { result, account: accountOf(seconds, seed, result) }
  } finally {
    await cluster.stop()
  }
}

/** Everything ended, and beyond the bound by no more than what the machine withheld while it was waited for. */
function isMachines({ violations, drainedMs, drainLagMs }: ChaosResult): boolean {
  const stuck = violations.filter(({ figure }) => figure === 'stuck')
  return stuck.every(({ says }) => says.endsWith('and did later')) && drainedMs - drainLagMs <= BOUND_MS
}

test.runIf(IS_LONG).each(Array.from({ length: RUNS }, (_, n) => n + 1))(
  'two minutes of chaos with a fresh seed, run %i: every bad figure is 0 at the bounds that are promised',
  { timeout: 600_000 },
  async (n) => {
    const acts: string[] = []
    const seed = (seedOf('long chaos') + n) % 2 ** 31
    const { result, account } = await runOf(SECONDS, seed, { log: (line) => acts.push(line) })
    console.log(JSON.stringify(account))
    const bad = badFigures(account).filter((figure) => figure !== 'stuck' || !isMachines(result))
    if (bad.length > 0) {
      console.log(`the evidence is in ${writeEvidence(`${ROOT}artifacts/faults`, account, result)}`)
      console.log(acts.join('\n'))
    }
    expect(Object.fromEntries(bad.map((figure) => [figure, account[figure]]))).toEqual({})
    expect(account.enqueued).toBeGreaterThan(500)
    expect(account.finished).toBeGreaterThanOrEqual(account.enqueued)
  },
)

test.runIf(IS_LONG)(
  'a reaper that takes jobs from sessions that live is caught, though nothing else is broken',
  { timeout: 300_000 },
  async () => {
    const sabotage: ChaosOptions['sabotage'] = async (sql) => {
      const [row] = await sql<{ sound: string }>(
        `select pg_get_functiondef('rowlock.reap'::regproc) as sound`,
      )
      // Whoever has let go of the row's lock is taken for gone.
      const broken = row!.sound.replace('and not "rowlock".is_session_alive(r.session_pid)', '')
      expect(broken).not.toBe(row!.sound)
      await sql(broken)
    }
    const { account } = await runOf(20, seedOf('broken reaper'), { acts: [], sabotage })
    expect(badFigures(account)).toEqual(['double_owner'])
  },
)
