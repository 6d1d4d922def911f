import { expect, test } from 'vitest'
import { drawn, type Plot } from '../../bench/kit/plot.ts'
import { number, type Recorded, reached, report, spreadText, tableText } from '../../bench/kit/report.ts'
import { spread } from '../../bench/kit/rounds.ts'

const RECORDED: Recorded = {
  scenario: 'drain',
  title: 'jobs are run',
  how: 'This is how.',
  quick: false,
  rounds: 3,
  date: '2026-11-30T20:15:00.000Z',
  tookS: 60,
  machine: { cpu: 'CPU', cpus: 2, memoryGb: 24, system: 'Linux', node: 'v20.20.2', load: [1, 2] },
  servers: [{ name: 'PostgreSQL 18.4', settings: { synchronous_commit: 'on' } }],
  result: {
    ours: { perSecond: 1 },
    peers: {},
    ratios: {},
    counted: {},
    tables: [{ title: 'Rates', columns: ['', 'jobs/s'], rows: [['rowlock', spread([12345, 9000, 20000])]] }],
    plots: [{ name: 'rate', title: 'A < B', kind: 'bars', xLabel: '', yLabel: 'jobs/s', series: [] }],
    targets: [{ what: 'by graphile', is: 2.4, atLeast: 2.5 }],
    contenders: [{ name: 'graphile', configuration: 'as it comes' }],
    missing: ['bullmq-redis: redis-server is not installed here'],
  },
}

test('numbers have three digits that count, and thousands stand apart', () => {
  const texts = [0, 0.012345, 1.2345, 99.96, 123.4, 12345.6, Number.NaN].map(number)
  expect(texts).toEqual(['0', '0.0123', '1.23', '100', '123', '12,346', '–'])
})

test('a spread is the median with the lowest and the highest; of one round there is none', () => {
  expect(spreadText(spread([1, 2, 4]))).toBe('2 (1–4)')
  expect(spreadText(spread([2]))).toBe('2')
})

test('columns of numbers stand to the right, and what nobody knows is a dash', () => {
  const text = tableText({
    title: 'T',
    columns: ['who', 'n'],
    rows: [
      ['a', 1],
      ['b', null],
    ],
  })
  expect(text).toBe('**T**\n\n| who | n |\n| --- | ---: |\n| a | 1 |\n| b | – |')
})

test('a result says its rounds, machine, servers, what was reached, who was missing, how each was set', () => {
  const text = report([RECORDED])
  for (const part of [
    '## drain',
    'This is how.',
    '2026-11-30 20:15 UTC, 3 rounds, 60 s. 2 × CPU, 24 GB',
    'PostgreSQL 18.4: `synchronous_commit = on`',
    '| by graphile | 2.4 | ≥ 2.5 | no |',
    '| rowlock | 12,345 (9,000–20,000) |',
    '![A < B](plots/drain-rate.svg)',
    '- missing: bullmq-redis: redis-server is not installed here',
    '- `graphile`: as it comes',
  ]) {
    expect(text).toContain(part)
  }
  expect(text).not.toContain('quick run')
})

test('a quick run is marked as one', () => {
  expect(report([{ ...RECORDED, quick: true }])).toContain('**A quick run**')
})

test('a bound is reached when the figure is on its right side', () => {
  expect(reached({ what: '', is: 2.5, atLeast: 2.5 })).toBe(true)
  expect(reached({ what: '', is: 0.51, atMost: 0.5 })).toBe(false)
})

const LINES: Plot = {
  name: 'p95',
  title: 'Claims & workers',
  kind: 'lines',
  xLabel: 'workers',
  yLabel: 'ms',
  xScale: 'log',
  series: [
    {
      name: 'ours',
      points: [
        { x: 1, y: 1 },
        { x: 16, y: 2 },
      ],
    },
    {
      name: 'theirs',
      points: [
        { x: 1, y: 3 },
        { x: 16, y: Number.NaN },
      ],
    },
  ],
}

test('a plot can be read in the dark and without colour, and leaves out what is not known', () => {
  const svg = drawn(LINES)
  expect(svg).toContain('prefers-color-scheme:dark')
  expect(svg).toContain('stroke-dasharray')
  expect(svg).toContain('Claims &amp; workers')
  expect(svg).not.toContain('NaN')
})

test('bars carry their figures', () => {
  const series = [{ name: 'jobs/s', points: [{ x: 'rowlock', y: 12_345 }] }]
  const svg = drawn({ ...LINES, kind: 'bars', series })
  expect(svg).toContain('>rowlock</text>')
  expect(svg).toContain('>12.3k</text>')
})
