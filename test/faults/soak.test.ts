// The soak in small: whether it works, balances, and finds what handlers keep on purpose; and the line that it fits, by
// hand. ROWLOCK_LONG=1: the whole of it, on a server of its own, with slopes.

import { createRowlock } from 'rowlock'
import { describe, expect, test } from 'vitest'
import { startCluster } from '../../faults/cluster.ts'
import { diceOf } from '../../faults/random.ts'
import { accountOf, isBad, judge, tableOf } from '../../faults/soak/account.ts'
import { LEAKS } from '../../faults/soak/leak.ts'
import { runSoak, type SoakOptions, type SoakResult } from '../../faults/soak/run.ts'
import { grows, quantile, type Sample, SURE, slopeOf } from '../../faults/soak/slope.ts'
import { seedOf } from '../engine/by-hand.ts'
import { rowlockDatabase } from '../support/database.ts'
import { IS_LONG } from '../support/long.ts'

/** Sixty samples in half an hour. */
const samples = (valueAt: (hours: number, n: number) => number): Sample[] =>
  Array.from({ length: 60 }, (_, n) => ({ hours: n / 120, value: valueAt(n / 120, n) }))
/** As figures tremble: by 1 %. */
const trembling = (seed: number) => {
  const { between } = diceOf(seed)
  return () => between(-1, 1)
}

describe('the line through samples', () => {
  test('has the slope, the mean and the interval of a worked example', () => {
    // Anscombe's first quartet: y = 3.0001 + 0.5001 x, standard error of the slope 0.1179, 9 degrees of freedom.
    const x = [10, 8, 13, 9, 11, 14, 6, 4, 12, 7, 5]
    const y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68]
    const { mean, percentPerHour, low, high } = slopeOf(x.map((hours, n) => ({ hours, value: y[n]! })))
    expect(mean).toBeCloseTo(7.5009, 3)
    expect((percentPerHour * mean) / 100).toBeCloseTo(0.5001, 4)
    expect((low * mean) / 100).toBeCloseTo(0.5001 - 2.262 * 0.1179, 2)
    expect((high * mean) / 100).toBeCloseTo(0.5001 + 2.262 * 0.1179, 2)
  })

  test.each([
    [6, 2.447],
    [9, 2.262],
    [10, 2.228],
    [30, 2.042],
    [120, 1.98],
  ])('is judged with Student’s t of the tables: %i degrees of freedom', (freedom, t) => {
    expect(quantile(freedom)).toBeCloseTo(t, 2)
  })

  test('is judged with more certainty where that is asked for', () => {
    expect(quantile(30, SURE['99.9 %'])).toBeCloseTo(3.646, 2)
    const noise = trembling(2)
    const some = samples((hours) => 100 + noise() + 1.5 * hours)
    expect(slopeOf(some, '99.9 %').low).toBeLessThan(slopeOf(some).low)
  })

  test.each<[string, (hours: number, n: number) => number]>([
    ['nothing', () => 0],
    ['always the same', () => 7],
    ['trembling about a mean', trembling(1)],
    ['a figure that falls', (hours) => 100 - 10 * hours],
    ['a slope of half a per cent an hour', (hours) => 100 + 0.5 * hours],
    ['one sample that is far off', (_, n) => (n === 40 ? 120 : 100)],
  ])('of what does not grow does not: %s', (_, valueAt) => {
    expect(grows(slopeOf(samples((hours, n) => valueAt(hours, n))))).toBe(false)
  })

  test.each<[string, (hours: number, n: number) => number]>([
    ['two per cent an hour', (hours) => 100 + 2 * hours],
    ['five per cent an hour in the noise of one', (hours, n) => 100 + trembling(n)() + 5 * hours],
    ['from nothing', (_, n) => n],
    ['one step that stays', (_, n) => (n < 30 ? 5 : 6)],
  ])('of what grows does: %s', (_, valueAt) => {
    expect(grows(slopeOf(samples(valueAt)))).toBe(true)
  })

  test('is not drawn through too few samples, or through those of one moment', () => {
    expect(() => slopeOf(samples(() => 1).slice(0, 7))).toThrow('7 samples are too few')
    expect(() => slopeOf(samples(() => 1).map(({ value }) => ({ hours: 1, value })))).toThrow('one time')
  })
})

describe('a soak', () => {
  const sound: SoakResult = {
    series: [{ who: 'worker 1', what: 'heap', when: 'at rest', samples: samples(() => 7) }],
    counts: { created: 3, deduped: 0, rolledBack: 0, calledOff: 0, pauses: 0 },
    ended: { done: 3 },
    unbalanced: [],
    mishaps: [],
    warnings: {},
  }
  const growing = { ...sound.series[0]!, what: 'listeners', samples: samples((hours) => 10 + hours) }

  test('is well when nothing grows and all balances, and not else', () => {
    expect(isBad(accountOf(20, 5, 1, sound))).toBe(false)
    const leaking = accountOf(20, 5, 1, { ...sound, series: [...sound.series, growing] })
    expect([isBad(leaking), leaking.growing, leaking.says]).toEqual([
      true,
      1,
      ['listeners of worker 1 at rest grows'],
    ])
    expect(tableOf(leaking).split('\n').at(-1)).toMatch(/listeners .* GROWS$/)
    expect(isBad(accountOf(20, 5, 1, { ...sound, unbalanced: ['3 keys are left'] }))).toBe(true)
    expect(isBad(accountOf(20, 5, 1, { ...sound, mishaps: ['worker 1 ended by itself'] }))).toBe(true)
    expect(() => accountOf(20, 5, 1, { ...sound, series: [] })).toThrow('no series')
  })

  const small = { seconds: 0, leastRounds: 10, warmUpSeconds: 0, roundMs: 1_500 }
  const soak = async (options: Omit<SoakOptions, 'url'>): Promise<SoakResult> => {
    const db = await rowlockDatabase('soak')
    try {
      return await runSoak({ url: db.direct, ...options })
    } finally {
      await db.drop()
    }
  }

  test('ends every job as its kind does, and leaves nothing', { timeout: 120_000 }, async () => {
    const { counts, ended, series, ...rest } = await soak({ ...small, seed: seedOf('soak') })
    expect(rest).toMatchObject({ unbalanced: [], mishaps: [] })
    expect(counts.created).toBeGreaterThan(100)
    expect(Object.values(ended).reduce((sum, jobs) => sum + jobs)).toBe(counts.created)
    expect(Object.keys(ended).sort()).toEqual(['cancelled', 'dead_letter', 'done', 'failed'])
    expect(series.length).toBeGreaterThan(50)
  })

  test('finds each thing that handlers keep', { timeout: 120_000 }, async () => {
    const result = await soak({ ...small, seed: 1, leaks: LEAKS })
    const found = judge(result).filter((one) => one.grows && one.when === 'at rest')
    const names = found.map(({ who, what }) => `${who} ${what}`)
    for (const leak of LEAKS)
      expect(names).toContain(`${leak === 'connections' ? 'server' : 'worker 1'} ${leak}`)
    expect(names.filter((name) => name.startsWith('client') && name !== 'client heap')).toEqual([])
    // What they keep open keeps their processes alive.
    expect(result.mishaps).toContain('worker 1 has stopped, and its process does not end')
  })
})

test.runIf(IS_LONG)(
  'in 20 minutes after 5 of warm-up nothing that a process holds grows',
  { timeout: 45 * 60_000 },
  async () => {
    const seed = seedOf('soak')
    const cluster = await startCluster()
    try {
      const rowlock = createRowlock({ connectionString: cluster.url })
      await rowlock.migrate()
      await rowlock.close()
      const result = await runSoak({ url: cluster.url, seed, seconds: 20 * 60, warmUpSeconds: 5 * 60 })
      const account = accountOf(20, 5, seed, result)
      console.log(tableOf(account))
      expect(account).toMatchObject({ says: [], growing: 0, unbalanced: 0, unexpected_exits: 0 })
    } finally {
      await cluster.stop()
    }
  },
)
