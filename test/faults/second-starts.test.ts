// How soon what a killed worker ran is started again, judged by hand-made histories; and in a real run of the chaos
// loop in which workers are killed, one at a time.

import { createRowlock } from 'rowlock'
import { describe, expect, test } from 'vitest'
import { accountOf, badFigures } from '../../faults/account.ts'
import { runChaos, SECOND_START_MS } from '../../faults/chaos.ts'
import { check } from '../../faults/checker.ts'
import { secondStarts } from '../../faults/checks/second-starts.ts'
import { walk } from '../../faults/checks/walk.ts'
import { startCluster } from '../../faults/cluster.ts'
import type { History } from '../../faults/history.ts'
import { seedOf } from '../engine/by-hand.ts'
import { IS_LONG } from '../support/long.ts'
import { claimed, completed, enqueued, putBack, ran, rescued } from './a-history.ts'

/** Its first worker was killed at 50; the lease was over at 100, and the next start was at 130. */
const killed = (over: Partial<History> = {}): History =>
  rescued({ deaths: [{ pid: 101, at: 50 }], secondStartMs: 90, ...over })
const said = (history: History) => check(history).map(({ figure, says }) => `${figure}: ${says}`)
const found = (history: History) => secondStarts(history, walk(history.audit))

const LATE = 'late_starts: attempt 1 was killed with its worker; the next started after 80 ms, of 60'

describe('the second start of what a killed worker ran', () => {
  test('is let pass within its bound, and judged late beyond it', () => {
    expect(said(killed())).toEqual([])
    expect(found(killed())).toEqual([{ jobId: '1', attempt: 1, tookMs: 80, isAlone: true }])
    expect(said(killed({ secondStartMs: 60 }))).toEqual([LATE])
  })

  test.each<[string, Partial<History>]>([
    ['another fault', { acts: [{ fault: 'freeze', from: 100, to: 105 }] }],
    ['a fault that had begun before', { acts: [{ fault: 'freeze', from: 40, to: 55 }] }],
    [
      'the death of another worker',
      {
        deaths: [
          { pid: 101, at: 50 },
          { pid: 103, at: 90 },
        ],
      },
    ],
  ])('is counted and not judged where it was disturbed by %s', (_, over) => {
    const history = killed({ secondStartMs: 60, ...over })
    expect(said(history)).toEqual([])
    expect(found(history)).toMatchObject([{ tookMs: 80, isAlone: false }])
  })

  test('is counted and not judged where it stood behind a backlog', () => {
    const others = (count: number) =>
      Array.from({ length: count }, (_, n) => claimed(115, 1, 'worker-2', { jobId: `other ${n}` })[1]!)
    const behind = (count: number) =>
      found(killed({ audit: [...rescued().audit, ...others(count)] })).map(({ isAlone }) => isAlone)
    expect([behind(0), behind(9), behind(10)]).toEqual([[true], [true], [false]])
  })

  test.each<[string, Partial<History>]>([
    ['the kill itself', { acts: [{ fault: 'kill', from: 49, to: 52 }] }],
    ['a fault that was over', { acts: [{ fault: 'freeze', from: 20, to: 49 }] }],
    ['a fault that came when it was late already', { acts: [{ fault: 'freeze', from: 111, to: 120 }] }],
  ])('is not excused by %s', (_, over) => {
    expect(said(killed({ secondStartMs: 60, ...over }))).toEqual([LATE])
  })

  test('is none where the worker was not killed, or had not begun', () => {
    expect(found(killed({ deaths: [] }))).toEqual([])
    expect(found(killed({ deaths: [{ pid: 101, at: 29 }] }))).toEqual([])
    expect(found(killed({ ledger: ran(2, 102, 130, 140) }))).toEqual([])
  })

  test('is the first loss of a job: who was lost before may wait to run alone', () => {
    const twice = killed({
      audit: [
        ...enqueued(10),
        ...claimed(20, 1),
        ...putBack(60, 1),
        ...claimed(70, 2, 'worker-1', { failures: 1, state: 'retryable' }),
        ...putBack(90, 2, 'worker-1', 1),
        ...claimed(500, 3, 'worker-2', { failures: 2, state: 'retryable' }),
        ...completed(550, 3, 'worker-2', 2),
      ],
      ledger: [...ran(1, 101, 30), ...ran(2, 101, 75), ...ran(3, 102, 510, 520)],
      attempts: [1, 2].map((attempt) => ({ jobId: '1', attempt, outcome: 'lost', cause: null })),
    })
    expect(found(twice).map(({ attempt, tookMs }) => [attempt, tookMs])).toEqual([[1, 25]])
  })
})

test.runIf(IS_LONG)(
  'workers that are killed one at a time: each job of theirs starts again within its lease and five seconds',
  { timeout: 300_000 },
  async () => {
    const seed = seedOf('kills')
    const cluster = await startCluster()
    try {
      const rowlock = createRowlock({ connectionString: cluster.url })
      await rowlock.migrate()
      await rowlock.close()
      const options = { faults: ['kill'], paceMs: SECOND_START_MS + 1_000, pauseMs: 400 }
      const result = await runChaos({ seconds: 60, seed, url: cluster.url, ...options })
      const account = accountOf(60, seed, result)
      expect(Object.fromEntries(badFigures(account).map((figure) => [figure, account[figure]]))).toEqual({})
      expect(account.second_starts_judged).toBeGreaterThan(0)
    } finally {
      await cluster.stop()
    }
  },
)
