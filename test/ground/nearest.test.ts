import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkOptions, nearest } from '../../src/ground/nearest.ts'
import { refusal } from './refusal.ts'

const KNOWN = ['queue', 'priority', 'delay', 'timeout', 'dedupeKey', 'retry']

describe('the nearest word', () => {
  it.each([
    ['queu', 'queue'],
    ['quueue', 'queue'],
    ['qeueu', 'queue'],
    ['prioritiy', 'priority'],
    ['timout', 'timeout'],
    ['timeOut', 'timeout'],
    ['dedupekey', 'dedupeKey'],
    ['dedup_key', 'dedupeKey'],
    ['rtery', 'retry'],
    ['delya', 'delay'],
  ])('to %s is %s', (word, meant) => {
    expect(nearest(word, KNOWN)).toBe(meant)
  })

  it.each(['', 'x', 'concurrency', 'tenant', 'a'.repeat(100_000)])('to %.20s is none', (word) => {
    expect(nearest(word, KNOWN)).toBeUndefined()
  })

  it('to a known word is that word', () => {
    for (const word of KNOWN) expect(nearest(word, KNOWN)).toBe(word)
  })

  it('is found for any single slip in a word of four letters or more', () => {
    fc.assert(
      fc.property(
        fc.stringMatching(/^[a-z]{4,30}$/),
        fc.nat(),
        fc.constantFrom(0, 1, 2, 3),
        (word, at, slip) => {
          const i = at % (word.length - 1)
          const [head, a, b, tail] = [word.slice(0, i), word[i], word[i + 1], word.slice(i + 2)]
          const slipped = [
            `${head}${b}${tail}`,
            `${head}${a}z${b}${tail}`,
            `${head}z${b}${tail}`,
            `${head}${b}${a}${tail}`,
          ]
          expect(nearest(slipped[slip]!, [word])).toBe(word)
        },
      ),
    )
  })
})

describe('options', () => {
  it('that are a revoked proxy are refused like any other junk', () => {
    const { proxy, revoke } = Proxy.revocable({}, {})
    revoke()
    expect(refusal(() => checkOptions(proxy, KNOWN, 'enqueue')).code).toBe('INVALID_OPTION')
  })

  it('with known names pass, and a name without value is as good as absent', () => {
    checkOptions({ queue: 'a', delay: 5 }, KNOWN, 'enqueue')
    checkOptions({ que: undefined }, KNOWN, 'enqueue')
    checkOptions(Object.create(null), KNOWN, 'enqueue')
    checkOptions(structuredClone({ queue: 'a' }), KNOWN, 'enqueue')
  })

  it('with an unknown name are refused with the nearest one', () => {
    const error = refusal(() =>
      checkOptions({ maxAtempts: 5 }, ['maxAttempts', 'backoff'], 'retry', 'retry.'),
    )
    expect(error).toMatchObject({ code: 'INVALID_OPTION', path: 'retry.maxAtempts' })
    expect(error.message).toBe(`retry has no option "maxAtempts"; did you mean 'maxAttempts'?`)
  })

  it('with a name like no other are refused with the list', () => {
    expect(refusal(() => checkOptions({ colour: 1 }, ['a', 'b'], 'enqueue')).message).toContain('known: a, b')
    expect(refusal(() => checkOptions({ ['__proto__']: 1, toString: 1 }, ['a'], 'enqueue')).code).toBe(
      'INVALID_OPTION',
    )
  })

  it.each([null, undefined, 5, 'queue', [], new Map(), new Date(), () => {}, new (class Options {})()])(
    'that are no plain object are refused (%#)',
    (options) => {
      expect(refusal(() => checkOptions(options, KNOWN, 'enqueue')).code).toBe('INVALID_OPTION')
    },
  )
})
