// The names and keys that jobs are found by: which texts can be one.
import { RowlockError } from './errors.ts'
import { LIMITS } from './limits.ts'
import { show } from './show.ts'
import { describeBytes } from './size.ts'

interface Bounds {
  readonly min: number
  readonly max: number
}

/** Check the name of a queue. Unit: UTF-8 bytes, 1 to 100. Errors: INVALID_OPTION. */
export function checkQueue(value: unknown, path = 'queue'): string {
  return checkText(path, value, LIMITS.nameBytes)
}

/** Check the name of a kind. Unit: UTF-8 bytes, 1 to 100. Errors: INVALID_OPTION. */
export function checkKind(value: unknown, path = 'kind'): string {
  return checkText(path, value, LIMITS.nameBytes)
}

/** Check the id of a tenant. Unit: UTF-8 bytes, 1 to 200. Errors: INVALID_OPTION. */
export function checkTenant(value: unknown, path = 'tenantId'): string {
  return checkText(path, value, LIMITS.tenantBytes)
}

/**
 * Check a dedupe or idempotency key; `name` is the option it came in.
 *
 * Unit: UTF-8 bytes, 1 to 512.
 * Errors: INVALID_OPTION.
 */
export function checkKey(name: string, value: unknown): string {
  return checkText(name, value, LIMITS.keyBytes)
}

/**
 * One rule for all of them: a text within its bytes, with no control character (U+0000 to U+001F, U+007F), no lone
 * surrogate, and no white space at either end. What looks equal to a person should be equal.
 */
function checkText(path: string, value: unknown, { min, max }: Bounds): string {
  if (typeof value !== 'string') return refuse(path, `must be a string; got ${show(value)}`)
  // Bytes are never fewer than UTF-16 units, so megabytes are refused unread.
  const bytes = value.length > max ? value.length : Buffer.byteLength(value)
  if (bytes < min) return refuse(path, 'must not be empty')
  if (bytes > max) return refuse(path, `must be at most ${describeBytes(max)} in UTF-8; got ${show(value)}`)
  if (hasControlOrHalf(value)) {
    return refuse(path, `must have no control character and no lone surrogate; got ${show(value)}`)
  }
  if (value.trim() !== value) return refuse(path, `must have no white space at its ends; got ${show(value)}`)
  return value
}

function hasControlOrHalf(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit < 0x20 || unit === 0x7f) return true
    if (unit < 0xd800 || unit > 0xdfff) continue
    const next = text.charCodeAt(i + 1)
    if (unit > 0xdbff || !(next >= 0xdc00 && next <= 0xdfff)) return true
    i++
  }
  return false
}

function refuse(path: string, what: string): never {
  throw new RowlockError('INVALID_OPTION', `${path} ${what}.`, { path })
}
