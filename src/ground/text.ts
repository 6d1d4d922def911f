// Text that PostgreSQL takes: cut by bytes on code points, without NUL and lone surrogates.

const MARK = '…'
const MARK_BYTES = Buffer.byteLength(MARK)
const LONE_SURROGATE = /\p{Surrogate}/gu

/** Does PostgreSQL refuse this text? It stores neither NUL nor half of a surrogate pair. */
export function isStorableText(text: string): boolean {
  LONE_SURROGATE.lastIndex = 0
  return !text.includes('\0') && !LONE_SURROGATE.test(text)
}

/** Put U+FFFD, the visible sign of a lost character, in place of each NUL and each lone surrogate. */
export function sanitise(text: string): string {
  return text.replaceAll('\0', '\uFFFD').replace(LONE_SURROGATE, '\uFFFD')
}

/**
 * Cut a text to at most `maxBytes` of UTF-8, never inside a code point. What was cut ends with `…`, which is counted.
 *
 * Unit: bytes. Below 3 bytes there is no room for the mark, and none is set.
 */
export function cutText(text: string, maxBytes: number): string {
  if (text.length <= maxBytes && Buffer.byteLength(text) <= maxBytes) return text
  const room = maxBytes >= MARK_BYTES ? maxBytes - MARK_BYTES : Math.max(0, maxBytes)
  // encodeInto stops before the code point that no longer fits, and says how many UTF-16 units it read. The slice may
  // end inside a pair, but then it is too long for that half to fit: no unit takes less than a byte.
  const { read } = new TextEncoder().encodeInto(text.slice(0, room), new Uint8Array(room))
  return text.slice(0, read) + (room === maxBytes ? '' : MARK)
}

/** Make any text storable within `maxBytes`: {@link sanitise}, then {@link cutText}. Cheap for megabytes. */
export function storableText(text: string, maxBytes: number): string {
  // One unit more than can be kept, so that what was cut is seen to be cut. When the slice halves a pair there, the
  // half is always cut away.
  return cutText(sanitise(text.slice(0, maxBytes + 1)), maxBytes)
}
