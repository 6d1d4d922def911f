import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Duration, describeMs, durationMs } from '../../src/ground/duration.ts'
import { refusal } from './refusal.ts'

const read = (value: unknown, min?: number, max?: number) =>
  durationMs(value, { name: 'delay', ...(min !== undefined && { min }), ...(max !== undefined && { max }) })

describe('a duration', () => {
  it.each([
    [0, 0],
    [-0, 0],
    [1500, 1500],
    [1.5, 2],
    ['250ms', 250],
    ['30s', 30_000],
    ['1.5h', 5_400_000],
    ['10m', 600_000],
    ['7d', 604_800_000],
    ['0s', 0],
    ['-0s', 0],
    ['0.0004s', 0],
    ['007s', 7000],
  ])('%j is %i ms', (value, ms) => {
    expect(Object.is(read(value), ms)).toBe(true)
  })

  it.each([
    Number.NaN,
    Number.POSITIVE_INFINITY,
    Number.NEGATIVE_INFINITY,
    -1,
    -1e15,
    1e300,
    Number.MAX_VALUE,
    '5',
    '',
    '1e3s',
    '0x10s',
    '.5s',
    '5.s',
    '+5s',
    '--5s',
    ' 5s',
    '5 s',
    '5s ',
    '5s\n',
    '5S',
    '30x',
    '-5s',
    'Infinitys',
    `${'9'.repeat(400)}d`,
    `${'0'.repeat(400)}5s`,
    '٣s',
    null,
    undefined,
    true,
    5n,
    [],
    ['5s'],
    {},
    new Date(5),
    new Date(Number.NaN),
  ])('of %o is refused', (value) => {
    expect(refusal(() => read(value))).toMatchObject({ code: 'INVALID_OPTION', path: 'delay' })
  })

  it('out of bounds is refused with the bounds in words', () => {
    expect(refusal(() => read('9ms', 10, 604_800_000)).message).toBe(
      'delay must be from 10ms to 7d; got "9ms".',
    )
    expect(refusal(() => read('8d', 10, 604_800_000)).message).toContain('from 10ms to 7d')
    expect(refusal(() => read('soon', 10, 604_800_000)).message).toContain(
      "such as '30s', '10m' or '2h', from 10ms to 7d",
    )
  })

  it('is held against its bounds before it is rounded', () => {
    expect(refusal(() => read(9.6, 10)).code).toBe('INVALID_OPTION')
    expect(refusal(() => read(-0.4)).code).toBe('INVALID_OPTION')
    expect(refusal(() => read(10.4, 0, 10)).code).toBe('INVALID_OPTION')
    expect(read(10, 10, 10)).toBe(10)
  })

  it('is a whole number within its bounds or a refusal, whatever is passed', () => {
    const written = fc
      .tuple(fc.double(), fc.constantFrom('ms', 's', 'm', 'h', 'd', 'x', ''))
      .map(([n, unit]) => `${n}${unit}`)
    fc.assert(
      fc.property(fc.oneof(fc.anything(), fc.double(), written), (value) => {
        const error = refusal(() => {
          const ms = read(value, 5, 1e9)
          if (!Number.isInteger(ms) || ms < 5 || ms > 1e9) throw new Error(`${ms}`)
        }, 'may pass')
        expect(error?.code ?? 'INVALID_OPTION').toBe('INVALID_OPTION')
      }),
    )
  })

  it('compiles only with a unit that exists', () => {
    const good: Duration[] = [5, '5ms', '30s', '1.5h', '7d', '2m']
    // @ts-expect-error no such unit
    const unit: Duration = '30x'
    // @ts-expect-error no unit
    const none: Duration = '30'
    // @ts-expect-error no number
    const word: Duration = 'soon'
    expect([...good, unit, none, word]).toHaveLength(9)
  })

  it.each([
    [0, '0s'],
    [1, '1ms'],
    [1500, '1500ms'],
    [30_000, '30s'],
    [90_000, '90s'],
    [3_600_000, '1h'],
    [604_800_000, '7d'],
  ])('of %i ms is said as %s, which reads back as the same', (ms, said) => {
    expect(describeMs(ms)).toBe(said)
    expect(read(said)).toBe(ms)
  })
})
