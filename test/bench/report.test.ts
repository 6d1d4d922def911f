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

test('a bar that is ten times as long as most is cut, and says how long it is', () => {
  const bars = (...ys: number[]): string => {
    const points = ys.map((y, n) => ({ x: `peer ${n}`, y }))
    return drawn({ ...LINES, kind: 'bars', series: [{ name: 'µs', points }] })
  }
  const width = (svg: string, n: number): number =>
    Number([...svg.matchAll(/<rect class="s\d".* width="(\d+)"/g)][n]![1])
  const svg = bars(10, 20, 30, 54_000)
  expect(svg).toContain('>54k</text>')
  expect(svg.match(/<path class="page"/g)).toHaveLength(1)
  expect(width(svg, 0)).toBeGreaterThan(20)
  expect(bars(10, 20, 30, 90)).not.toContain('<path class="page"')
})

test('what does not fit into one line of the legend stands in the next', () => {
  const names = [
    'naive',
    'for update',
    'one transaction',
    'skip locked',
    'rowlock, 1 a claim',
    'rowlock, 20 a claim',
  ]
  const svg = drawn({ ...LINES, series: names.map((name) => ({ name, points: [{ x: 1, y: 1 }] })) })
  for (const name of names) {
    const x = Number(new RegExp(`<text x="([\\d.]+)" y="\\d+">${name}<`).exec(svg)?.[1])
    expect(x + name.length * 7.4).toBeLessThan(720)
  }
})

test('sets of bars differ without colour, and among peers ours stand out', () => {
  const points = ['rowlock', 'graphile'].map((x) => ({ x, y: 5 }))
  const inks = (names: string[]): string[] => {
    const svg = drawn({ ...LINES, kind: 'bars', series: names.map((name) => ({ name, points })) })
    return [...svg.matchAll(/fill-opacity="([\d.]+)" x="200"/g)].map(([, opacity]) => opacity!)
  }
  expect(inks(['p50', 'p99'])).toEqual(['1', '0.45', '1', '0.45'])
  expect(inks(['jobs/s'])).toEqual(['1', '0.45'])
  const lines = drawn({ ...LINES, series: [{ ...LINES.series[0]!, name: 'rowlock' }, LINES.series[1]!] })
  expect(lines.match(/stroke-width:3.5/g)).toHaveLength(1)
})
