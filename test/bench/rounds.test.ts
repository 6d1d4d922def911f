import { expect, test } from 'vitest'
import { interleaved, median, percentile, spread, spreads } from '../../bench/kit/rounds.ts'
import { countedOf, known, peersOf, ratio, versusTable } from '../../bench/kit/versus.ts'

const named = (...names: string[]) => names.map((name) => ({ name }))

test('the median is the value in the middle, or the mean of the two', () => {
  expect(median([9, 1, 5])).toBe(5)
  expect(median([4, 1, 3, 10])).toBe(3.5)
  expect(median([])).toBeNaN()
})

test('a percentile is a value that was measured', () => {
  const values = Array.from({ length: 100 }, (_, n) => 100 - n)
  expect([percentile(values, 0.5), percentile(values, 0.99), percentile(values, 1)]).toEqual([50, 99, 100])
  expect(percentile([7], 0.5)).toBe(7)
})

test('a spread keeps its rounds in the order in which they were measured', () => {
  expect(spread([3, 1, 2])).toEqual({ median: 2, min: 1, max: 3, rounds: [3, 1, 2] })
})

test('a figure that some rounds do not have is spread over those that have it', () => {
  expect(spreads([{ a: 1 }, { a: 3, b: 5 }]).b?.rounds).toEqual([5])
})

test('contenders take turns, and nobody always comes after the same one', async () => {
  const order: string[] = []
  await interleaved(3, named('a', 'b', 'c'), async ({ name }) => {
    order.push(name)
    return { n: 1 }
  })
  expect(order.join('')).toBe('abcbcacab')
})

test('one that fails is out for the rest, and is told', async () => {
  const failed: string[] = []
  const samples = await interleaved(
    2,
    named('a', 'b'),
    async ({ name }) => {
      if (name === 'b') throw new Error('no')
      return { n: 1 }
    },
    ({ name }) => failed.push(name),
  )
  expect([[...samples.keys()], failed]).toEqual([['a'], ['b']])
})

test('without somebody to tell, a failure is thrown', async () => {
  const fails = async () => {
    throw new Error('no')
  }
  await expect(interleaved(1, named('a'), fails)).rejects.toThrow('no')
})

test('a budget that is used up ends the rounds; who had no turn by then is out', async () => {
  const out: string[] = []
  const one = async () => ({ n: 1 })
  const samples = await interleaved(9, named('a', 'b'), one, ({ name }) => out.push(name), -1)
  expect([[...samples], out]).toEqual([[['a', [{ n: 1 }]]], ['b']])
})

const SAMPLES = new Map([
  [
    'ours',
    [
      { perSecond: 100, pgCpuUs: 10 },
      { perSecond: 50, pgCpuUs: 10 },
    ],
  ],
  [
    'theirs',
    [
      { perSecond: 50, pgCpuUs: 40 },
      { perSecond: 10, pgCpuUs: 40 },
    ],
  ],
])

test('a ratio is that of the rounds, so that a slow round moves both', () => {
  expect(ratio(SAMPLES, 'perSecond', 'ours', 'theirs')).toBe(3.5)
  expect(ratio(SAMPLES, 'perSecond', 'ours', 'nobody')).toBeNaN()
  expect(known({ a: 1, b: Number.NaN })).toEqual({ a: 1 })
})

test('figures are said of ours, of peers, and as counted ones, each by name', () => {
  expect(peersOf(SAMPLES, 'ours', ['perSecond'])).toEqual({ theirs: { perSecond: 30 } })
  expect(countedOf(SAMPLES)).toEqual({ ours: { pgCpuUs: 10 }, theirs: { pgCpuUs: 40 } })
})

test('a table has a row a contender and no column that nobody fills', () => {
  const { columns, rows } = versusTable('t', SAMPLES, ['perSecond', 'redisCpuUs'])
  expect(columns).toEqual(['', 'jobs/s'])
  expect(rows.map(([name]) => name)).toEqual(['ours', 'theirs'])
})
