import { describe, expect, it, vi } from 'vitest'
import {
  cancel,
  isDecision,
  isPermanent,
  PermanentError,
  permanent,
  snooze,
} from '../../src/ground/decisions.ts'
import { describeThrown } from '../../src/ground/thrown.ts'
import { refusal } from './refusal.ts'

describe('a decision', () => {
  it('to snooze holds its delay, and one to cancel its reason', () => {
    expect(snooze('5m')).toMatchObject({ decision: 'snooze', delayMs: 300_000 })
    expect(cancel('no longer wanted')).toMatchObject({ decision: 'cancel', reason: 'no longer wanted' })
    expect(cancel()).not.toHaveProperty('reason')
  })

  it('is known as one in another copy of the package, and nothing else is', async () => {
    vi.resetModules()
    const copy = await import('../../src/ground/decisions.ts')
    expect(copy.snooze).not.toBe(snooze)
    expect(copy.isDecision(snooze(5))).toBe(true)
    expect(isDecision(copy.cancel())).toBe(true)
    expect(copy.isPermanent(permanent(new Error('x')))).toBe(true)
    const { proxy, revoke } = Proxy.revocable({}, {})
    revoke()
    for (const value of [
      null,
      undefined,
      5,
      'snooze',
      { decision: 'snooze', delayMs: 5 },
      proxy,
      permanent(1),
    ]) {
      expect(isDecision(value)).toBe(false)
    }
  })

  it('is lost in JSON, so that no stored result can be mistaken for one', () => {
    expect(isDecision(JSON.parse(JSON.stringify(snooze(5))))).toBe(false)
  })

  it('is refused with a bad delay or a reason that is no text', () => {
    expect(refusal(() => snooze(-1)).path).toBe('delay')
    expect(refusal(() => snooze('11y' as never)).code).toBe('INVALID_OPTION')
    expect(refusal(() => cancel(5 as never)).path).toBe('reason')
  })

  it('to cancel stands with a reason that is cut and storable, however long', () => {
    const { reason } = cancel(`a\0${'😀'.repeat(1000)}`)
    expect(Buffer.byteLength(reason!)).toBeLessThanOrEqual(1000)
    expect(reason).toMatch(/^a\ufffd(😀)+…$/u)
  })
})

describe('a permanent error', () => {
  it('wraps whatever was thrown and is described as that', () => {
    const error = Object.assign(new TypeError('no such mailbox'), { code: 'E_MAILBOX' })
    const marked = permanent(error)
    expect(marked).toBeInstanceOf(PermanentError)
    expect(marked).toMatchObject({ message: 'no such mailbox', cause: error, inner: error })
    expect(describeThrown(marked)).toEqual(describeThrown(error))
    for (const value of [undefined, null, 0, '', Symbol('s'), Object.freeze({ a: 1 })]) {
      expect(permanent(value).inner).toBe(value)
      expect(describeThrown(permanent(value))).toEqual(describeThrown(value))
    }
  })

  it('is not wrapped twice', () => {
    const marked = permanent(new Error('x'))
    expect(permanent(marked)).toBe(marked)
  })

  it('is permanent itself; an error that it caused is not', () => {
    const marked = permanent(new Error('x'))
    expect(isPermanent(marked)).toBe(true)
    expect(isPermanent(new Error('y', { cause: marked }))).toBe(false)
    for (const value of [undefined, null, 5, {}, new Error('z')]) expect(isPermanent(value)).toBe(false)
  })
})
