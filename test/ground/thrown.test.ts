import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { RowlockError } from '../../src/ground/errors.ts'
import { LIMITS } from '../../src/ground/limits.ts'
import { isStorableText } from '../../src/ground/text.ts'
import { describeThrown, type Thrown } from '../../src/ground/thrown.ts'

const boom = () => {
  throw new Error('boom')
}
const ALL_TRAPS = Object.fromEntries(
  Reflect.ownKeys(Reflect).map((name) => [name, boom]),
) as ProxyHandler<object>

function revoked(target: object): unknown {
  const { proxy, revoke } = Proxy.revocable(target, {})
  revoke()
  return proxy
}

/** What holds for every description: it can be stored. */
function expectStorable({ cause, error }: Thrown): void {
  expect(cause).toMatch(/^\S+$/)
  expect(Buffer.byteLength(cause)).toBeLessThanOrEqual(LIMITS.causeBytes.max)
  expect(error.message).not.toBe('')
  const json = JSON.stringify(error)
  expect(Buffer.byteLength(json)).toBeLessThanOrEqual(LIMITS.errorBytes.max)
  expect(JSON.parse(json)).toEqual(error)
  JSON.parse(json, (key, value) => {
    expect(isStorableText(key)).toBe(true)
    if (typeof value === 'string') expect(isStorableText(value)).toBe(true)
    return value
  })
}

describe('an error that was thrown', () => {
  it('is kept with name, message, code and frames', () => {
    const error = Object.assign(new TypeError('no such host'), { code: 'ENOTFOUND', secret: 'x', status: 5 })
    const { cause, error: kept } = describeThrown(error)
    expect(cause).toBe('ENOTFOUND')
    expect(kept).toEqual({
      name: 'TypeError',
      message: 'no such host',
      code: 'ENOTFOUND',
      stack: expect.stringMatching(/^at .*thrown\.test\.ts/),
    })
  })

  it.each([
    [new Error('x'), 'Error'],
    [new TypeError('x'), 'TypeError'],
    [Object.assign(new Error('x'), { code: '23505' }), '23505'],
    [Object.assign(new Error('x'), { code: 404 }), '404'],
    [Object.assign(new Error('x'), { code: 4.5 }), 'Error'],
    [Object.assign(new Error('x'), { code: Number.NaN }), 'Error'],
    [Object.assign(new Error('x'), { code: 'two words' }), 'Error'],
    [Object.assign(new Error('x'), { code: '' }), 'Error'],
    [Object.assign(new Error('x'), { code: 'a\0' }), 'Error'],
    [Object.assign(new RangeError('x'), { code: 'y'.repeat(101) }), 'RangeError'],
    [Object.assign(new Error('x'), { code: { a: 1 } }), 'Error'],
    [Object.assign(new Error('x'), { code: 5n }), 'Error'],
    [Object.assign(new Error('x'), { name: 'not a word' }), 'Error'],
    [Object.assign(new Error('x'), { name: 5 }), 'Error'],
    [Object.assign(new Error('x'), { name: '' }), 'Error'],
    [new DOMException('gone', 'AbortError'), 'AbortError'],
    [new RowlockError('INPUT_REFUSED', 'x'), 'INPUT_REFUSED'],
  ])('has one word as its cause (%#)', (error, cause) => {
    expect(describeThrown(error).cause).toBe(cause)
    expectStorable(describeThrown(error))
  })

  it('is kept with what caused it, from the outside in', () => {
    const error = new Error('outer', { cause: new TypeError('middle', { cause: 'inner' }) })
    const { causes } = describeThrown(error).error
    expect(causes?.map(({ name, message }) => [name, message])).toEqual([
      ['TypeError', 'middle'],
      [undefined, 'inner'],
    ])
  })

  it('ends where its causes come round, and after the first ten', () => {
    const a = new Error('a')
    const b = new Error('b', { cause: a })
    a.cause = b
    expect(describeThrown(a).error.causes).toHaveLength(1)
    const self = new Error('self')
    self.cause = self
    expect(describeThrown(self).error.causes).toBeUndefined()
    let deep = new Error('0')
    for (let i = 1; i < 10_000; i++) deep = new Error(`${i}`, { cause: deep })
    expect(describeThrown(deep).error.causes).toHaveLength(10)
  })

  it('that gathers others is kept with the first of them, and how many more there are', () => {
    const many = new AggregateError(
      Array.from({ length: 100 }, (_, i) => new Error(`e${i}`)),
      'all failed',
    )
    const { errors } = describeThrown(many).error
    expect(errors).toHaveLength(11)
    expect(errors?.[0]).toMatchObject({ message: 'e0' })
    expect(errors?.[10]).toEqual({ message: '… and 90 more' })
    const wrapped = new Error('fetch failed', { cause: new AggregateError([new Error('refused')]) })
    expect(describeThrown(wrapped).error.causes?.[0]).toMatchObject({
      message: 'AggregateError',
      errors: [{ message: 'refused' }],
    })
    const itself = new AggregateError([], 'x')
    itself.errors.push(itself)
    expect(describeThrown(itself).error.errors).toBeUndefined()
  })

  it('of megabytes is cut on characters, with a mark, and keeps its frames', () => {
    const error = new Error('😀'.repeat(5_000_000))
    const { error: kept } = describeThrown(error)
    expect(kept.message).toMatch(/^(😀)+…$/u)
    expect(kept.stack).toMatch(/^at .*thrown\.test\.ts/)
    expectStorable({ cause: 'Error', error: kept })
  })

  it('whose every field is large, with causes and gathered errors, fits as a whole', () => {
    const huge = (n: number, cause?: unknown): Error =>
      Object.assign(
        new AggregateError(n > 0 ? [huge(n - 1), huge(n - 1)] : [], '\u0001'.repeat(100_000), { cause }),
        {
          name: '\u0002'.repeat(100_000),
          code: '\u0003'.repeat(100_000),
          stack: '\u0004'.repeat(100_000),
        },
      ) as Error
    expectStorable(describeThrown(huge(4, huge(3, huge(2)))))
  })

  it('whose message looks like a stack keeps its true frames', () => {
    const { stack, message } = describeThrown(new Error('first\n    at fake (fake.ts:1:1)')).error
    expect(message).toContain('fake.ts')
    expect(stack).toMatch(/^at .*thrown\.test\.ts/)
    expect(stack).not.toContain('fake.ts')
  })

  it('with NUL and halves of characters shows U+FFFD in their place', () => {
    const error = Object.assign(new Error('a\0b\ud83d'), { name: 'N\0', code: 'C\ude00', stack: 's\0' })
    expect(describeThrown(error).error).toEqual({
      name: 'N\ufffd',
      message: 'a\ufffdb\ufffd',
      code: 'C\ufffd',
      stack: 's\ufffd',
    })
  })

  it('whose every getter throws is an error without words', () => {
    const error = new Error('x')
    // The stack first: V8 makes it of name and message when it is touched.
    for (const key of ['stack', 'name', 'message', 'code', 'cause', 'errors']) {
      Object.defineProperty(error, key, { get: boom })
    }
    expect(describeThrown(error)).toEqual({ cause: 'Error', error: { message: 'Error' } })
  })
})

describe('something else that was thrown', () => {
  it.each([
    [undefined, 'undefined'],
    [null, 'null'],
    [0, '0'],
    ['no luck', 'no luck'],
    ['', 'an empty string'],
    ['a\0', 'a\ufffd'],
    [5n, '5n'],
    [Symbol('s'), 'Symbol(s)'],
    [Object.freeze({ reason: 'busy' }), "{ reason: 'busy' }"],
    [[1, 2], '[ 1, 2 ]'],
    [{ message: 'looks like one', code: 'X' }, "{ message: 'looks like one', code: 'X' }"],
  ])('is kept in words (%#)', (value, message) => {
    expect(describeThrown(value)).toEqual({ cause: 'non_error', error: { message } })
  })

  it('is kept however hostile it is', () => {
    const hostile: unknown[] = [
      new Proxy({}, ALL_TRAPS),
      new Proxy(new Error('x'), ALL_TRAPS),
      new Proxy(() => {}, ALL_TRAPS),
      new Proxy(new Error('x'), { get: boom }),
      revoked({}),
      revoked([]),
      revoked(new Error('x')),
      { toString: boom, valueOf: boom, toJSON: boom, [Symbol.toPrimitive]: boom },
      {
        get [Symbol.toStringTag]() {
          return boom()
        },
      },
      {
        get constructor() {
          return boom()
        },
      },
      Object.create(new Proxy({}, ALL_TRAPS)),
      Object.assign(new Error('x'), { cause: revoked({}) }),
      Object.assign(new Error('x'), { cause: new Proxy(new Error('y'), ALL_TRAPS) }),
      Object.assign(new AggregateError([]), { errors: revoked([]) }),
      Object.assign(new AggregateError([]), {
        errors: new Proxy([], { get: (_, key) => (key === 'length' ? 2 ** 53 : boom()) }),
      }),
      Object.assign(new Error('x'), {
        message: new Proxy({}, ALL_TRAPS),
        name: revoked({}),
        stack: { toString: boom },
      }),
      Object.setPrototypeOf(new Error('x'), null),
      Object.create(Error.prototype),
      Error.prototype,
      'x'.repeat(50_000_000),
      { nested: 'x'.repeat(50_000_000) },
      globalThis,
    ]
    for (const value of hostile) expectStorable(describeThrown(value))
  })

  it('never makes the description fail, whatever it is', () => {
    const prepared = fc.anything({
      withMap: true,
      withBoxedValues: true,
      withNullPrototype: true,
      withBigInt: true,
    })
    const fields = fc.record(
      {
        name: prepared,
        message: prepared,
        code: prepared,
        stack: prepared,
        cause: prepared,
        errors: prepared,
      },
      { requiredKeys: [] },
    )
    const errors = fields.map((own) => {
      const error = new AggregateError([], 'x')
      Object.defineProperty(error, 'stack', { value: 'none', configurable: true })
      for (const [key, value] of Object.entries(own)) Object.defineProperty(error, key, { value })
      return error
    })
    fc.assert(
      fc.property(fc.oneof(prepared, errors), fc.integer({ min: 0, max: 3 }), (value, wrap) => {
        const target = typeof value === 'object' && value !== null ? value : {}
        const thrown = [
          value,
          new Error('x', { cause: value }),
          new Proxy(target, ALL_TRAPS),
          new AggregateError([value]),
        ]
        expectStorable(describeThrown(thrown[wrap]))
      }),
      { numRuns: 500 },
    )
  })
})
