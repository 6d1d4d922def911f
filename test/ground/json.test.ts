import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { RowlockError } from '../../src/ground/errors.ts'
import { toStorableJson } from '../../src/ground/json.ts'
import { refusal } from './refusal.ts'

const store = (value: unknown, maxBytes = 1_000_000) => toStorableJson(value, { maxBytes, what: 'input' })
const refused = (value: unknown) => refusal(() => store(value))

describe('a value that jsonb can hold', () => {
  it.each([
    [null, 'null'],
    [true, 'true'],
    [0, '0'],
    [-0, '0'],
    [Number.MAX_VALUE, '1.7976931348623157e+308'],
    [Number.MIN_VALUE, '5e-324'],
    ['text', '"text"'],
    ['', '""'],
    ['😀', '"😀"'],
    [[], '[]'],
    [[1, [2]], '[1,[2]]'],
    [{}, '{}'],
    [{ a: undefined, b: 1 }, '{"b":1}'],
    [{ at: new Date(0) }, '{"at":"1970-01-01T00:00:00.000Z"}'],
    [Object.assign(Object.create(null), { a: 1 }), '{"a":1}'],
    [{ u: new URL('https://example.org/') }, '{"u":"https://example.org/"}'],
    [{ a: '\\u0000', b: '\\ud83d', c: 'C:\\users' }, '{"a":"\\\\u0000","b":"\\\\ud83d","c":"C:\\\\users"}'],
    [{ a: '\u001b[31m' }, '{"a":"\\u001b[31m"}'],
    [{ '': 1, 'a b': 2 }, '{"":1,"a b":2}'],
    [{ [Symbol('s')]: 1, a: 1 }, '{"a":1}'],
  ])('is stored as JSON writes it (%#)', (value, json) => {
    expect(store(value)).toEqual({ json, bytes: Buffer.byteLength(json) })
  })

  it('may hold the same object twice', () => {
    const shared = { a: [1] }
    expect(store([shared, shared, { shared }]).json).toBe('[{"a":[1]},{"a":[1]},{"shared":{"a":[1]}}]')
  })

  it('keeps __proto__ as a key like any other, and pollutes nothing', () => {
    const value = JSON.parse('{"__proto__":{"polluted":true},"a":"x"}')
    expect(store(value).json).toBe('{"__proto__":{"polluted":true},"a":"x"}')
    value.a = new URL('https://example.org/')
    expect(store(value).json).toBe('{"__proto__":{"polluted":true},"a":"https://example.org/"}')
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined()
  })

  it('may come from another realm', () => {
    const value = runInNewContext('({ a: [1], d: new Date(5), n: Object.create(null) })')
    expect(store(value).json).toBe('{"a":[1],"d":"1970-01-01T00:00:00.005Z","n":{}}')
    expect(refused(runInNewContext('({ a: new Map() })')).message).toContain('a is a Map')
  })

  it('is read through toJSON, which is called once with its key', () => {
    const calls: unknown[] = []
    const money = {
      toJSON(key: string) {
        calls.push(key)
        return { amount: '5.00', at: new Date(0) }
      },
    }
    expect(store({ price: money }).json).toBe('{"price":{"amount":"5.00","at":"1970-01-01T00:00:00.000Z"}}')
    expect(store([money]).json).toContain('"5.00"')
    expect(store(money).json).toContain('"5.00"')
    expect(calls).toEqual(['price', '0', ''])
    expect(store({ a: { toJSON: () => undefined }, b: 1 }).json).toBe('{"b":1}')
    const itself = Object.defineProperty({ a: 1 }, 'toJSON', { value: () => itself })
    expect(store(itself).json).toBe('{"a":1}')
  })

  it('is read once where the quick look was not sure, so that a getter cannot change its mind', () => {
    let reads = 0
    const value = {
      get a() {
        return reads++ === 0 ? 'good' : 5n
      },
    }
    expect(refused(value).path).toBe('a')
    const turns: unknown[] = [1n, 'good', 'bad\0']
    expect(store({ get: 1, ...{} }).json).toBe('{"get":1}')
    const late = {
      get a() {
        return turns.shift()
      },
    }
    expect(store(late).json).toBe('{"a":"good"}')
  })

  it('has at most 500 levels', () => {
    const nested = (levels: number) => JSON.parse('['.repeat(levels) + ']'.repeat(levels))
    expect(store(nested(500)).bytes).toBe(1000)
    expect(refused(nested(501)).message).toContain('deeper than 500 levels')
    expect(refused(nested(501)).path?.length).toBeLessThanOrEqual(401)
    expect(refused(nested(5000)).code).toBe('INPUT_NOT_STORABLE')
  })
})

describe('a value that jsonb cannot hold faithfully', () => {
  class Money {
    amount = 5
  }
  const cases: [unknown, string, RegExp][] = [
    [undefined, '', /input itself is undefined; pass null or \{\}/],
    [{ a: { b: [1, 2, 3, { 'odd key': Number.NaN }] } }, 'a.b[3]["odd key"]', /is NaN; pass a finite number/],
    [[Number.POSITIVE_INFINITY], '[0]', /Infinity/],
    [{ n: 2n ** 63n }, 'n', /a BigInt \(9223372036854775808n\); pass it as a string/],
    [() => 1, '', /a function/],
    [{ s: Symbol('x') }, 's', /a symbol/],
    [[1, undefined], '[1]', /is undefined; put null there/],
    // biome-ignore lint/suspicious/noSparseArray: the hole is the case
    [[1, , 3], '[1]', /a hole in an array/],
    [new Array(2 ** 32 - 1), '[0]', /a hole/],
    [{ d: new Date(Number.NaN) }, 'd', /an invalid date/],
    [new Map([[1, 2]]), '', /a Map; pass Object\.fromEntries\(map\)/],
    [{ a: new Set() }, 'a', /a Set; pass \[\.\.\.set\]/],
    [/x/, '', /a RegExp/],
    [new Error('x'), '', /an Error; pass \{ message: error\.message \}/],
    [{ p: Promise.resolve() }, 'p', /a Promise; await it first/],
    [Buffer.from('x'), '', /binary data; encode it as base64/],
    [{ a: new Uint8Array(2) }, 'a', /binary data/],
    [new ArrayBuffer(2), '', /binary data/],
    [new DataView(new ArrayBuffer(2)), '', /binary data/],
    [new Number(5), '', /a boxed primitive; pass its valueOf\(\)/],
    [[new String('a')], '[0]', /a boxed primitive/],
    [Object(5n), '', /a boxed primitive/],
    [new Money(), '', /an instance of Money; pass a plain object/],
    [new WeakMap(), '', /an instance of WeakMap/],
    [Object.create({ a: 1 }), '', /pass a plain object/],
    ['a\0', '', /a string with NUL \(U\+0000\) at 1/],
    [{ a: ['😀'.slice(0, 1)] }, 'a[0]', /half of a character \(a lone surrogate\) at 0/],
    [{ a: 'b\ude00' }, 'a', /lone surrogate\) at 1/],
    [{ 'k\0': 1 }, '["k\\u0000"]', /under a key with NUL/],
    [{ a: { '\ud83d': 1 } }, 'a["\\ud83d"]', /under a key with half/],
    [{ a: { toJSON: () => 5n } }, 'a', /a BigInt/],
    [{ a: { toJSON: () => new Money() } }, 'a', /an instance of Money/],
    [Object.assign([1], { toJSON: () => Number.NaN }), '', /NaN/],
    [Object.defineProperty({}, 'toJSON', { value: () => Number.NaN }), '', /NaN/],
    [[{ toJSON: () => undefined }], '[0]', /undefined/],
    [{ toJSON: () => undefined }, '', /undefined/],
  ]

  it.each(cases)('is refused with its path, what was found and what to do (%#)', (value, path, message) => {
    const error = refused(value)
    expect(error).toMatchObject({ code: 'INPUT_NOT_STORABLE', path })
    expect(error.message).toMatch(message)
  })

  it('because it refers back to itself is refused with both ends of the cycle', () => {
    const value: Record<string, unknown> = { a: { b: [{}] } }
    ;(value as { a: { b: { up?: unknown }[] } }).a.b[0]!.up = value.a
    expect(refused(value)).toMatchObject({
      path: 'a.b[0].up',
      message: expect.stringContaining('a cycle, back to a;'),
    })
    value.a = value
    expect(refused(value).message).toContain('a is a cycle, back to the input itself')
    const array: unknown[] = []
    array.push(array)
    expect(refused(array).path).toBe('[0]')
    const endless = { toJSON: () => ({ next: endless }) }
    expect(refused(endless).message).toContain('deeper than 500')
  })

  it('because it throws when it is read is refused, and nothing else is thrown', () => {
    const boom = () => {
      throw new Error('boom')
    }
    expect(
      refused({
        a: {
          get b() {
            return boom()
          },
        },
      }),
    ).toMatchObject({ path: 'a.b', message: expect.stringContaining('boom') })
    expect(refused({ a: { toJSON: boom } }).path).toBe('a')
    const ours = () => {
      throw new RowlockError('CLOSED', 'not about this value')
    }
    expect(refused({ a: { toJSON: ours } })).toMatchObject({ code: 'INPUT_NOT_STORABLE', path: 'a' })
    expect(
      refused({
        a: [
          {
            get toJSON() {
              return boom()
            },
          },
        ],
      }).path,
    ).toBe('a[0]')
    for (const trap of ['get', 'ownKeys', 'getPrototypeOf', 'getOwnPropertyDescriptor'] as const) {
      expect(refused({ a: new Proxy({ b: 1 }, { [trap]: boom }) }).code).toBe('INPUT_NOT_STORABLE')
    }
    for (const target of [{}, []]) {
      const { proxy, revoke } = Proxy.revocable(target, {})
      revoke()
      expect(refused({ a: proxy }).path).toBe('a')
    }
  })

  it('although somebody taught BigInt to convert itself', () => {
    const prototype = BigInt.prototype as { toJSON?: unknown }
    prototype.toJSON = () => 'junk'
    try {
      expect(refused({ a: 5n }).path).toBe('a')
    } finally {
      delete prototype.toJSON
    }
  })

  it('as metadata is refused with a path that begins there', () => {
    const metadata = { maxBytes: 100, what: 'metadata' } as const
    const cycle: Record<string, unknown> = {}
    cycle.a = cycle
    expect(refusal(() => toStorableJson({ a: 5n }, metadata)).path).toBe('metadata.a')
    expect(refusal(() => toStorableJson(cycle, metadata)).message).toContain(
      'metadata.a is a cycle, back to metadata;',
    )
    expect(refusal(() => toStorableJson({ a: 'x'.repeat(100) }, metadata))).toMatchObject({
      code: 'INPUT_TOO_LARGE',
      path: 'metadata',
    })
  })
})

describe('a value whose JSON is too large', () => {
  it('is refused with its size and the limit in words', () => {
    expect(store('x'.repeat(999_998)).bytes).toBe(1_000_000)
    const error = refused('x'.repeat(1_400_000))
    expect(error.code).toBe('INPUT_TOO_LARGE')
    expect(error.message).toContain('1 MB')
    expect(refused('é'.repeat(500_000)).message).toContain('The input is 1.01 MB of JSON; at most 1 MB')
  })

  it('is refused before it unfolds, however large it would be', () => {
    let value: unknown = 'x'
    for (let i = 0; i < 100; i++) value = [value, value]
    expect(refused(value).code).toBe('INPUT_TOO_LARGE')
    const endless = new Proxy([], {
      get: (_, key) => (key === 'length' ? 2 ** 40 : key === 'toJSON' ? undefined : 1),
    })
    expect(refused(endless).code).toBe('INPUT_TOO_LARGE')
  })
})

describe('any value', () => {
  const halves = fc
    .array(fc.oneof(fc.nat(0xff), fc.integer({ min: 0xd7f0, max: 0xe010 })), { maxLength: 8 })
    .map((units) => String.fromCharCode(...units))
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    halves,
    fc.constantFrom('__proto__', 'toJSON', '\\u0000'),
  )
  const everything = fc.anything({
    key: text,
    values: [
      text,
      fc.double(),
      fc.boolean(),
      fc.constant(null),
      fc.constant(undefined),
      fc.bigInt(),
      fc.date({ noInvalidDate: false }),
    ],
    withNullPrototype: true,
    withDate: true,
    withMap: true,
    withSet: true,
    withTypedArray: true,
    withSparseArray: true,
    withBoxedValues: true,
    withObjectString: true,
  })
  const storable = fc.anything({
    key: fc.oneof(fc.string({ unit: 'grapheme' }), fc.constant('__proto__')),
    values: [
      fc.string({ unit: 'grapheme' }),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.boolean(),
      fc.constant(null),
    ],
    withNullPrototype: true,
    withDate: false,
    maxDepth: 6,
  })

  it('is stored as its normal form or refused with a code, and never anything else', () => {
    fc.assert(
      fc.property(everything, (value) => {
        let stored: string | undefined
        const error = refusal(() => {
          stored = store(value).json
        }, 'may pass')
        const form = normal(value)
        expect(error?.code).toBe(form === REFUSED ? 'INPUT_NOT_STORABLE' : undefined)
        if (error) expect(typeof error.path).toBe('string')
        else expect(JSON.parse(stored!)).toEqual(form)
      }),
      { numRuns: 2000 },
    )
  })

  it('of plain data is stored, and reads back equal', () => {
    fc.assert(
      fc.property(storable, (value) => {
        fc.pre(normal(value) !== REFUSED)
        expect(store(value).json).toBe(JSON.stringify(value))
        expect(JSON.parse(store(value).json)).toEqual(normal(value))
      }),
      { numRuns: 500 },
    )
  })

  it('is judged alike by the quick look and by the judge', () => {
    fc.assert(
      fc.property(everything, (value) => {
        // A getter that flips no answer, but the toJSON beside it sends the whole value to the judge.
        const judged = refusal(() => store([{ toJSON: () => null }, value]), 'may pass')
        const quick = refusal(() => store([null, value]), 'may pass')
        expect(judged?.message).toBe(quick?.message)
      }),
      { numRuns: 1000 },
    )
  })
})

const REFUSED = Symbol('refused')
const good = (text: string) => !text.includes('\0') && !/\p{Surrogate}/u.test(text)

/** The rule once more, written for clearness: what a value is stored as. */
function normal(value: unknown): unknown {
  if (value === null || typeof value === 'boolean') return value
  if (typeof value === 'number') return Number.isFinite(value) ? value + 0 : REFUSED
  if (typeof value === 'string') return good(value) ? value : REFUSED
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? REFUSED : value.toISOString()
  if (Array.isArray(value)) {
    const items = Array.from(value, normal)
    return items.includes(REFUSED) ? REFUSED : items
  }
  if (typeof value !== 'object') return REFUSED
  const prototype = Object.getPrototypeOf(value)
  if (prototype !== null && prototype !== Object.prototype) return REFUSED
  const entries = Object.entries(value).filter(([, item]) => item !== undefined)
  const forms = entries.map(([key, item]) => [key, good(key) ? normal(item) : REFUSED] as const)
  return forms.some(([, form]) => form === REFUSED) ? REFUSED : Object.fromEntries(forms)
}
