// A stream of bytes as lines of text: numbered from 1, with the digest of all lines so far. A line that is no text is
// said, and the next one is read. Holds no more than one line.

import { isUtf8 } from 'node:buffer'
import { hash } from 'node:crypto'
import { LIMITS } from '../ground/limits.ts'

/** A line without its end. */
export interface Line {
  readonly number: number
  readonly text: string
  /** Of this line and all before it, whatever ends lines and whether the last one has an end. */
  readonly digest: string
  /** Bytes of the stream up to and with this line. */
  readonly bytes: number
  /** False for a last line that no line end follows. */
  readonly isEnded: boolean
  /** Why it is no text; the text is empty then. */
  readonly fault?: string
}

const LF = 0x0a
const CR = 0x0d

/** Read lines. `digest` is that of no lines. A byte order mark and the CR of Windows count for nothing. */
export async function* readLines(
  source: AsyncIterable<Uint8Array>,
  digest: string,
  maxBytes = LIMITS.importLineBytes.max,
): AsyncGenerator<Line, void> {
  let number = 0
  let bytes = 0
  let parts: Buffer[] = []
  let held = 0
  const line = (last: Buffer, isEnded: boolean): Line => {
    const length = held + last.length
    const raw = parts.length === 0 ? last : Buffer.concat([...parts, last])
    parts = []
    held = 0
    number++
    bytes += length + (isEnded ? 1 : 0)
    const found =
      length > maxBytes ? { text: '', fault: tooLong(length, maxBytes) } : textOf(raw, number === 1)
    digest = hash('sha256', `${digest}\n${found.text}`)
    return { number, digest, bytes, isEnded, ...found }
  }
  for await (const piece of source) {
    let rest = Buffer.from(piece.buffer, piece.byteOffset, piece.length)
    for (let at = rest.indexOf(LF); at >= 0; at = rest.indexOf(LF)) {
      yield line(rest.subarray(0, at), true)
      rest = rest.subarray(at + 1)
    }
    if (rest.length === 0) continue
    // Of a line that is too long only the length is of interest.
    if (held <= maxBytes) parts.push(rest)
    held += rest.length
  }
  if (held > 0) yield line(Buffer.alloc(0), false)
}

const tooLong = (length: number, maxBytes: number) =>
  `is ${length.toLocaleString('en')} bytes long; at most ${maxBytes.toLocaleString('en')}`

function textOf(raw: Buffer, isFirst: boolean): { text: string; fault?: string } {
  let line = raw.at(-1) === CR ? raw.subarray(0, -1) : raw
  if (isFirst && line[0] === 0xef && line[1] === 0xbb && line[2] === 0xbf) line = line.subarray(3)
  if (isFirst && ((line[0] === 0xff && line[1] === 0xfe) || (line[0] === 0xfe && line[1] === 0xff)))
    return { text: '', fault: 'is UTF-16; save the file as UTF-8' }
  if (isFirst && line[0] === 0x1f && line[1] === 0x8b)
    return { text: '', fault: 'is gzip: unpack it, as in gunzip -c FILE | rowlock enqueue --file -' }
  if (!isUtf8(line)) return { text: '', fault: `is not UTF-8 (byte ${wrongByte(line)} of the line)` }
  const text = line.toString('utf8')
  const nul = text.indexOf('\0')
  return nul < 0
    ? { text }
    : { text: '', fault: `holds a NUL (character ${nul + 1}): no text in PostgreSQL can` }
}

/** The first byte that begins no character. Unit: from 1. */
function wrongByte(line: Buffer): number {
  let good = 0
  let bad = line.length
  while (bad - good > 1) {
    const middle = (good + bad) >> 1
    // A cut in the middle of a character is no fault: it ends within three bytes.
    const isGood = [0, 1, 2, 3].some((less) => middle - less >= 0 && isUtf8(line.subarray(0, middle - less)))
    if (isGood) good = middle
    else bad = middle
  }
  while (good > 0 && !isUtf8(line.subarray(0, good))) good--
  return good + 1
}
