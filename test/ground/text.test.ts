import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { describeBytes } from '../../src/ground/size.ts'
import { cutText, isStorableText, sanitise, storableText } from '../../src/ground/text.ts'

const units = fc.array(fc.oneof(fc.nat(0xffff), fc.integer({ min: 0xd7f0, max: 0xe010 })), { maxLength: 60 })
const anyText = fc.oneof(
  fc.string({ unit: 'binary' }),
  units.map((u) => String.fromCharCode(...u)),
)

describe('text', () => {
  it('that fits is not touched, and text that does not is cut with a mark', () => {
    expect(cutText('abcdef', 6)).toBe('abcdef')
    expect(cutText('abcdefg', 6)).toBe('abc…')
    expect(cutText('😀😀', 8)).toBe('😀😀')
    expect(cutText('😀😀', 7)).toBe('😀…')
    expect(cutText('😀😀', 6)).toBe('…')
    expect(cutText('ééé', 5)).toBe('é…')
    expect(cutText('abc', 2)).toBe('ab')
    expect(cutText('é', 1)).toBe('')
    expect(cutText('abc', 0)).toBe('')
  })

  it('is cut on code points, within its bytes, to what it began with', () => {
    fc.assert(
      fc.property(anyText.map(sanitise), fc.nat(50), (text, max) => {
        const cut = cutText(text, max)
        expect(Buffer.byteLength(cut)).toBeLessThanOrEqual(max)
        expect(isStorableText(cut)).toBe(true)
        if (Buffer.byteLength(text) <= max) expect(cut).toBe(text)
        else expect(text.startsWith(max >= 3 ? cut.slice(0, -1) : cut)).toBe(true)
      }),
    )
  })

  it('has U+FFFD for each NUL and each half of a pair, and is storable then', () => {
    expect(sanitise('a\0b\ud83dc😀\ude00')).toBe('a\ufffdb\ufffdc😀\ufffd')
    fc.assert(
      fc.property(anyText, (text) => {
        expect(isStorableText(sanitise(text))).toBe(true)
        expect(sanitise(text)).toHaveLength(text.length)
        if (isStorableText(text)) expect(sanitise(text)).toBe(text)
      }),
    )
  })

  it('of any kind becomes storable within its bytes', () => {
    fc.assert(
      fc.property(anyText, fc.nat(50), (text, max) => {
        const stored = storableText(text, max)
        expect(stored).toBe(cutText(sanitise(text), max))
        expect(Buffer.byteLength(stored)).toBeLessThanOrEqual(max)
        expect(isStorableText(stored)).toBe(true)
      }),
    )
  })
})

describe('text cut to be storable', () => {
  it('ends with the mark whenever something was cut', () => {
    expect(storableText('abcdefg', 6)).toBe('abc…')
    expect(storableText('abcdef', 6)).toBe('abcdef')
    expect(storableText('abcde😀', 6)).toBe('abc…')
    expect(cutText('aaaa😀', 7)).toBe('aaaa…')
  })
})

describe('a size', () => {
  it.each([
    [0, '0 bytes'],
    [1, '1 byte'],
    [4096, '4,096 bytes'],
    [64_000, '64 kB'],
    [64_001, '64.1 kB'],
    [999_999, '1000 kB'],
    [1_000_000, '1 MB'],
    [1_000_001, '1.01 MB'],
    [52_428_800, '52.5 MB'],
  ])('of %i bytes is said as %s', (bytes, said) => {
    expect(describeBytes(bytes)).toBe(said)
  })
})
