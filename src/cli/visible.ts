// Data made safe to show on a terminal: one line, no escape codes, nothing that hides or turns text around. And its
// width there, which is not its length: 漢字 take two columns each.

import stringWidth from 'string-width'

// Controls (C0, DEL, C1), line separators, lone surrogates, and what Unicode calls format or ignorable: bidi controls,
// zero-width spaces, tags, BOM. Joiners and variation selectors stay: emoji and Indic scripts need them.
const HIDDEN = /(?!\u200c|\u200d|\p{Variation_Selector})[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{DI}]/gu
const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }
const ESCAPES = '\u001b['
const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' })

/** Text as one line that a terminal shows as it stands; what cannot be shown stands as `\n`, `\x1b`, `\u202e`. */
export function visible(text: string): string {
  return text.replace(HIDDEN, (sign) => {
    const code = sign.codePointAt(0)!
    if (SHORT[sign] !== undefined) return SHORT[sign]
    if (code <= 0xff) return `\\x${code.toString(16).padStart(2, '0')}`
    return code <= 0xffff ? `\\u${code.toString(16).padStart(4, '0')}` : `\\u{${code.toString(16)}}`
  })
}

/** Text of several lines, each made {@link visible}. */
export function visibleLines(text: string): string[] {
  return text.split(/\r\n|[\n\r\u2028\u2029]/).map(visible)
}

/** Columns that a text takes; its colours take none. */
export function widthOf(text: string): number {
  return stringWidth(text)
}

/** Cut visible text without colours to so many columns, never inside a character; what was cut ends with `…`. */
export function cut(text: string, columns: number): string {
  if (text.includes(ESCAPES)) throw new Error('cut before you paint')
  if (text.length <= columns && !/[^\x20-\x7e]/.test(text)) return text
  if (text.length < columns * 8 && widthOf(text) <= columns) return text
  if (columns < 1) return ''
  let kept = ''
  let used = 0
  for (const { segment } of graphemes.segment(text.slice(0, columns * 8))) {
    const width = widthOf(segment)
    if (used + width > columns - 1) break
    kept += segment
    used += width
  }
  return `${kept.trimEnd()}…`
}

/** Text broken at blanks into lines of at most so many columns; a longer word is broken where it must be. */
export function wrap(text: string, columns: number): string[] {
  const lines: string[] = []
  let line = ''
  for (let word of text.split(' ')) {
    if (line !== '' && widthOf(line) + 1 + widthOf(word) > columns) {
      lines.push(line)
      line = ''
    }
    while (widthOf(word) > columns) {
      const head = cut(word, columns + 1).replace(/…$/, '')
      if (head === '') break
      lines.push(line === '' ? head : `${line} ${head}`)
      line = ''
      word = word.slice(head.length)
    }
    line = line === '' ? word : `${line} ${word}`
  }
  return [...lines, line]
}
