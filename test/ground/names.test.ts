import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkKey, checkKind, checkQueue, checkTenant } from '../../src/ground/names.ts'
import { refusal } from './refusal.ts'

describe('a name', () => {
  it.each(['default', 'send-email', 'a', 'Rechnung prüfen', '請求書', '😀', 'a:b/c.d', 'x'.repeat(100)])(
    'may be %s',
    (name) => {
      expect(checkQueue(name)).toBe(name)
      expect(checkKind(name)).toBe(name)
    },
  )

  it.each([
    '',
    ' ',
    ' a',
    'a ',
    'a\n',
    '\u00a0a',
    '\ufeffa',
    'a\0b',
    'a\tb',
    'a\u001fb',
    'a\u007fb',
    '\ud83d',
    'a\ude00b',
    '\ude00\ud83d',
    'x'.repeat(101),
    'é'.repeat(51),
    'x'.repeat(50_000_000),
    undefined,
    null,
    5,
    new String('a'),
    ['a'],
    {},
    Symbol('a'),
  ])('may not be as in case %#', (value) => {
    const error = refusal(() => checkQueue(value))
    expect(error).toMatchObject({ code: 'INVALID_OPTION', path: 'queue' })
    expect(error.message.length).toBeLessThan(250)
  })

  it('is measured in bytes, not in characters', () => {
    expect(checkQueue('é'.repeat(50))).toHaveLength(50)
    expect(refusal(() => checkQueue(`${'é'.repeat(50)}a`)).message).toContain('at most 100 bytes in UTF-8')
  })

  it('of a tenant has up to 200 bytes, and a key up to 512', () => {
    expect(checkTenant('t'.repeat(200))).toHaveLength(200)
    expect(refusal(() => checkTenant('t'.repeat(201))).path).toBe('tenantId')
    expect(checkKey('dedupeKey', 'k'.repeat(512))).toHaveLength(512)
    expect(refusal(() => checkKey('idempotencyKey', 'k'.repeat(513))).path).toBe('idempotencyKey')
  })

  it('is returned as it is, or refused, whatever is passed', () => {
    const halves = fc.array(fc.integer({ min: 0, max: 0xffff })).map((u) => String.fromCharCode(...u))
    fc.assert(
      fc.property(fc.oneof(fc.anything(), fc.string({ unit: 'binary' }), halves), (value) => {
        const error = refusal(() => expect(checkKey('dedupeKey', value)).toBe(value), 'may pass')
        const good = typeof value === 'string' && value !== '' && Buffer.byteLength(value) <= 512
        const clean = good && value.trim() === value && !/\p{Surrogate}/u.test(value) && !hasControl(value)
        expect(error?.code).toBe(clean ? undefined : 'INVALID_OPTION')
      }),
    )
  })
})

const hasControl = (text: string) => [...text].some((c) => c < ' ' || c === '\x7f')
