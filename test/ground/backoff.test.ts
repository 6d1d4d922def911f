import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type Backoff,
  backoffMs,
  checkBackoff,
  DEFAULT_BACKOFF,
  exponential,
  fixed,
  list,
} from '../../src/ground/backoff.ts'
import { LIMITS } from '../../src/ground/limits.ts'
import { refusal } from './refusal.ts'

const ODD_FAILURES = [0, 1, 2, 31, 62, 63, 100, 101, 1000, 32_767, 2 ** 31, 2 ** 53, Number.MAX_VALUE]
const cap = (policy: Backoff) =>
  policy.type === 'exponential'
    ? policy.max_ms
    : policy.type === 'fixed'
      ? policy.delay_ms
      : Math.max(...policy.delays_ms)

const wait = fc.integer({ min: 0, max: LIMITS.backoffMaxMs.max })
const policies: fc.Arbitrary<Backoff> = fc.oneof(
  fc
    .tuple(wait, wait, fc.option(fc.double({ min: 1, max: 10, noNaN: true }), { nil: undefined }))
    .map(([a, b, factor]) =>
      exponential({ min: Math.min(a, b), max: Math.max(a, b), ...(factor !== undefined && { factor }) }),
    ),
  wait.map(fixed),
  fc.array(wait, { minLength: 1, maxLength: 100 }).map(list),
)
const failures = fc.oneof(fc.constantFrom(...ODD_FAILURES), fc.integer({ min: 1, max: 200 }))

describe('a backoff', () => {
  it('is exponential from 5s to 1h when nobody said otherwise', () => {
    expect(DEFAULT_BACKOFF).toEqual({ type: 'exponential', min_ms: 5000, max_ms: 3_600_000 })
    expect(backoffMs(undefined, 1, () => 1)).toBe(10_000)
    expect(backoffMs(undefined, 1, () => 0)).toBe(5000)
    expect(backoffMs(undefined, 99, () => 1)).toBe(3_600_000)
  })

  it('is stored as it is made', () => {
    expect(exponential({ min: '5s', max: '1h' })).toEqual({
      type: 'exponential',
      min_ms: 5000,
      max_ms: 3_600_000,
    })
    expect(exponential({ factor: 3 })).toHaveProperty('factor', 3)
    expect(fixed('1m')).toEqual({ type: 'fixed', delay_ms: 60_000 })
    expect(list(['1s', 2000, '1m'])).toEqual({ type: 'list', delays_ms: [1000, 2000, 60_000] })
  })

  it('cannot be changed once it is made', () => {
    for (const policy of [exponential(), fixed(5), list([1]), list([1]).delays_ms]) {
      expect(Object.isFrozen(policy)).toBe(true)
    }
  })

  it('that is exponential doubles its ceiling and is jittered above its floor', () => {
    const policy = exponential({ min: 1000, max: 60_000 })
    const ceilings = [1, 2, 3, 4, 5, 6, 7].map((n) => backoffMs(policy, n, () => 1))
    expect(ceilings).toEqual([2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000])
    expect(backoffMs(policy, 3, () => 0)).toBe(1000)
    expect(backoffMs(policy, 3, () => 0.5)).toBe(4500)
  })

  it('that is a list gives its last wait for ever', () => {
    const policy = list([100, 50, 300])
    expect([0, 1, 2, 3, 4, 1000].map((n) => backoffMs(policy, n))).toEqual([100, 100, 50, 300, 300, 300])
  })

  it('is whole, finite, and between 0 and its cap, after any number of failures', () => {
    fc.assert(
      fc.property(policies, failures, fc.double({ min: 0, max: 1, noNaN: true }), (policy, n, r) => {
        const ms = backoffMs(policy, n, () => r)
        expect(Number.isInteger(ms)).toBe(true)
        expect(ms).toBeGreaterThanOrEqual(policy.type === 'exponential' ? policy.min_ms : 0)
        expect(ms).toBeLessThanOrEqual(cap(policy))
      }),
    )
  })

  it('holds its bounds when the count or the dice are broken', () => {
    for (const n of [2 ** 31, Number.POSITIVE_INFINITY]) expect(backoffMs(exponential({ min: 0 }), n)).toBe(0)
    expect(backoffMs(exponential(), 1, () => Number.NaN)).toBe(5000)
    expect([1.5, Number.NaN, -1].map((n) => backoffMs(list([1, 2]), n))).toEqual([1, 1, 1])
    fc.assert(
      fc.property(policies, fc.double(), fc.double(), (policy, n, r) => {
        const ms = backoffMs(policy, n, () => r)
        expect(ms >= 0 && ms <= cap(policy) && Number.isInteger(ms)).toBe(true)
      }),
    )
  })

  it('that is exponential never has a lower ceiling after more failures', () => {
    fc.assert(
      fc.property(policies, failures, failures, (policy, a, b) => {
        fc.pre(policy.type === 'exponential')
        const [less, more] = [Math.min(a, b), Math.max(a, b)]
        expect(backoffMs(policy, less, () => 1)).toBeLessThanOrEqual(backoffMs(policy, more, () => 1))
      }),
    )
  })

  it('survives storage: its JSON is checked back into the same policy', () => {
    fc.assert(
      fc.property(policies, (policy) => {
        expect(checkBackoff(JSON.parse(JSON.stringify(policy)))).toEqual(policy)
      }),
    )
  })

  it('whose least wait is above its greatest is refused', () => {
    const error = refusal(() => exponential({ min: '2h' }))
    expect(error).toMatchObject({ code: 'INVALID_OPTION', path: 'min' })
    expect(error.message).toBe('min (2h) must not be above max (1h).')
  })

  it.each([
    () => exponential({ min: -1 }),
    () => exponential({ max: '31d' }),
    () => exponential({ factor: 0.5 }),
    () => exponential({ factor: 11 }),
    () => exponential({ factor: Number.NaN }),
    () => exponential({ factor: '2' as never }),
    () => exponential({ minimum: 5 } as never),
    () => exponential(null as never),
    () => fixed(undefined as never),
    () => fixed('31d'),
    () => list([]),
    () => list(['1s', -1]),
    () => list(new Array(3) as never),
    () => list(Array.from({ length: 101 }, () => 1)),
    () => list('1s' as never),
    () => checkBackoff(undefined),
    () => checkBackoff(null),
    () => checkBackoff('exponential'),
    () => checkBackoff({ type: 'expontential' }),
    () => checkBackoff({ type: 'exponential' }),
    () => checkBackoff({ type: 'exponential', min_ms: 5, max_ms: 1 }),
    () => checkBackoff({ type: 'fixed', delay_ms: 5, extra: 1 }),
    () => checkBackoff({ type: 'list', delays_ms: {} }),
  ])('that is malformed is refused (%#)', (make) => {
    expect(refusal(make).code).toBe('INVALID_OPTION')
  })

  it('that is misspelt is answered with the nearest word', () => {
    expect(refusal(() => checkBackoff({ type: 'exponentail' })).message).toContain(
      "did you mean 'exponential'?",
    )
    expect(refusal(() => checkBackoff({ type: 'fixed', delay: 5 }, 'retry.backoff'))).toMatchObject({
      path: 'retry.backoff.delay',
    })
  })
})
