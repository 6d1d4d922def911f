// Any value in a few words, for messages. It never throws and runs no code of the value that it can avoid.
import { inspect } from 'node:util'
import { cutText, sanitise } from './text.ts'

/**
 * Show a value as a person would write it, on one line, cut to `maxBytes`. Never throws.
 *
 * Unit: `maxBytes` in UTF-8, default 80.
 */
export function show(value: unknown, maxBytes = 80): string {
  try {
    if (typeof value === 'string') return cutText(JSON.stringify(value.slice(0, maxBytes + 1)), maxBytes)
    const text = inspect(value, {
      depth: 2,
      breakLength: Number.POSITIVE_INFINITY,
      maxArrayLength: 20,
      maxStringLength: maxBytes,
      customInspect: false,
      showProxy: true,
    })
    return cutText(sanitise(text.slice(0, maxBytes + 1)), maxBytes)
  } catch {
    return 'a value that cannot be shown'
  }
}

/** Is this an Error, of this realm or another? Never throws: a revoked proxy is none. */
export function isError(value: unknown): value is Error {
  try {
    return value instanceof Error || Object.prototype.toString.call(value) === '[object Error]'
  } catch {
    return false
  }
}

/** Read a property that may be a hostile getter: what throws reads as undefined. */
export function peek(value: unknown, key: PropertyKey): unknown {
  try {
    return (value as Record<PropertyKey, unknown>)[key]
  } catch {
    return undefined
  }
}
