// Tables, amounts and progress as text: what fits, what is cut, what is left out.

import { describe, expect, test } from 'vitest'
import { ago, count, instant, span } from '../../src/cli/amounts.ts'
import { painter } from '../../src/cli/paint.ts'
import { Progress } from '../../src/cli/progress.ts'
import { commandLine, Shell } from '../../src/cli/shell.ts'
import { type Column, table } from '../../src/cli/table.ts'
import { cut, visible, widthOf, wrap } from '../../src/cli/visible.ts'

const plain = painter(false)

describe('a table', () => {
  interface Row {
    readonly id: string
    readonly kind: string
    readonly note?: string
  }
  const columns: readonly Column<Row>[] = [
    { head: 'ID', of: ({ id }) => id, isNumber: true },
    { head: 'KIND', of: ({ kind }) => kind, min: 10, style: () => 'red' },
    { head: 'NOTE', of: ({ note }) => note ?? '', isOptional: true, min: 6, weight: 1 },
  ]
  const rows = [
    { id: '7', kind: 'short', note: 'a note of some length' },
    { id: '1234', kind: 'a-kind-with-a-long-name', note: '' },
  ]
  const show = (width: number, of: readonly Row[] = rows) => table(of, columns, { width, paint: plain })

  test('has its natural width where there is room, numbers to the right, no blanks at the ends', () => {
    expect(show(80)).toEqual([
      '  ID  KIND                     NOTE',
      '   7  short                    a note of some length',
      '1234  a-kind-with-a-long-name',
    ])
  })

  test('is cut from the widest column first, then loses what matters least, and never wraps', () => {
    expect(show(40)).toEqual([
      '  ID  KIND              NOTE',
      '   7  short             a note of some…',
      '1234  a-kind-with-a-l…',
    ])
    expect(show(20)).toEqual(['  ID  KIND', '   7  short', '1234  a-kind-with-a…'])
    for (let width = 10; width <= 60; width++) {
      for (const line of show(width)) expect(widthOf(line)).toBeLessThanOrEqual(width)
    }
  })

  test('leaves out what no row has', () => {
    expect(show(80, [{ id: '1', kind: 'k' }])).toEqual(['ID  KIND', ' 1  k'])
  })

  test('is painted without its colours counting as width', () => {
    const [head, first] = table(rows, columns, { width: 40, paint: painter(true) })
    expect(head).toContain('\u001b[1m')
    expect(first).toContain('\u001b[31mshort\u001b[39m')
    expect(widthOf(first!)).toBe(widthOf(show(40)[1]!))
  })

  test('counts wide characters as a terminal does', () => {
    const lines = show(30, [
      { id: '1', kind: '漢字の名前が長い仕事です', note: 'x' },
      { id: '2', kind: '👩‍👩‍👧‍👦', note: 'y' },
    ])
    for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(30)
    expect(lines[1]).toMatch(/…/)
    expect(widthOf(lines[1]!.split('x')[0]!)).toBe(widthOf(lines[2]!.split('y')[0]!))
  })
})

test('what a terminal must not get is shown as what it is', () => {
  expect(visible('a\u001b[2J\u0007\nb\tc')).toBe('a\\x1b[2J\\x07\\nb\\tc')
  expect(visible('\u009b31m \u202e \u2028 \u200b \ufeff \ud800 \u{e0041}')).toBe(
    '\\x9b31m \\u202e \\u2028 \\u200b \\ufeff \\ud800 \\u{e0041}',
  )
  for (const text of ['плохо', '漢字', '👩‍👩‍👧‍👦', 'नमस्ते', '❤️', 'é']) expect(visible(text)).toBe(text)
})

test('text is cut inside no character, and quickly however long it is', () => {
  expect(cut('short', 5)).toBe('short')
  expect(cut('longer', 5)).toBe('long…')
  expect(cut('漢字漢字', 5)).toBe('漢字…')
  expect(cut('漢字漢字', 4)).toBe('漢…')
  expect(cut('👩‍👩‍👧‍👦👩‍👩‍👧‍👦', 3)).toBe('👩‍👩‍👧‍👦…')
  expect(cut('x'.repeat(10_000_000), 4)).toBe('xxx…')
  expect(cut('x', 0)).toBe('')
})

test('sentences wrap at blanks, and words that are too long where they must', () => {
  expect(wrap('one two three', 7)).toEqual(['one two', 'three'])
  expect(wrap('abcdefghij kl', 4)).toEqual(['abcd', 'efgh', 'ij', 'kl'])
  expect(wrap('', 10)).toEqual([''])
  for (const line of wrap('漢字漢字漢字 text', 5)) expect(widthOf(line)).toBeLessThanOrEqual(5)
})

test('amounts are said as people say them', () => {
  const spans = [0, 340, 1_000, 9_990, 12_000, 192_000, 3_600_000, 86_400_000 * 4 + 3_600_000 * 3, -5_000]
  expect(spans.map(span)).toEqual(['0ms', '340ms', '1s', '9.9s', '12s', '3m 12s', '1h', '4d 3h', '-5s'])
  const now = new Date('2026-01-31T04:00:00Z')
  expect([-7_200_000, 0, 90_000].map((ms) => ago(new Date(now.getTime() - ms), now))).toEqual([
    'in 2h',
    'now',
    '1m 30s ago',
  ])
  expect(instant(new Date('2026-01-31T04:05:06.789Z'))).toBe('2026-01-31 04:05:06Z')
  expect([count(1234567), count(12_000, true)]).toEqual(['1,234,567', 'about 12,000'])
})

test('what is to be typed is quoted for a shell, whatever is in it', () => {
  expect(commandLine('redrive', '--error', `can't`)).toBe(`rowlock redrive --error 'can'\\''t'`)
  expect(commandLine('jobs', '--url', 'postgres://ada:secret@db/x')).toBe(
    `rowlock jobs --url 'postgres://ada:***@db/x'`,
  )
  expect(commandLine('job', '')).toBe(`rowlock job ''`)
  expect(commandLine('x', 'a\u001b\\b')).toBe(`rowlock x $'a\\u001b\\\\b'`)
})

describe('progress', () => {
  function at(isTTY: boolean) {
    let now = 0
    let said = ''
    const write = (text: string) => {
      said += text
      return true
    }
    const sink = { write, isTTY, columns: 70 }
    const io = { stdout: sink, stderr: sink, env: {}, now: () => now } as never
    const progress = new Progress(new Shell(io, []), { total: 1_000, about: true })
    return {
      progress,
      step(ms: number, done: number) {
        now += ms
        said = ''
        progress.update(done)
        return said
      },
      end() {
        said = ''
        progress.end()
        return said
      },
    }
  }

  test('is one line that is drawn again on a terminal, and taken away at the end', () => {
    const { step, end } = at(true)
    expect(step(1_000, 250)).toBe(
      '\r\u001b[2K██████░░░░░░░░░░░░░░░░░░ 250 of about 1,000 jobs · 250/s · 3s left',
    )
    expect(step(50, 260)).toBe('')
    expect(widthOf(step(1_000, 99_999_999).replace('\r\u001b[2K', ''))).toBeLessThan(70)
    expect(end()).toBe('\r\u001b[2K')
  })

  test('is a plain line every few seconds elsewhere', () => {
    const { step, end } = at(false)
    expect(step(1_000, 100)).toBe('')
    expect(step(4_000, 500)).toBe('50 % · 500 of about 1,000 jobs · 100/s · 5s left\n')
    expect(step(4_000, 900)).toBe('')
    expect(end()).toBe('')
  })
})
