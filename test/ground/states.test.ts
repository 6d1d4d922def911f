import { describe, expect, it } from 'vitest'
import {
  markdownTable,
  mermaid,
  PHASES,
  phaseOf,
  STATES,
  TRANSITIONS,
  transitionsFrom,
  VERBS,
} from '../../src/ground/states.ts'

describe('the state table', () => {
  it('holds each state in exactly one phase', () => {
    expect(Object.values(PHASES).flat().sort()).toEqual([...STATES].sort())
    for (const state of STATES) expect(PHASES[phaseOf(state)] as readonly string[]).toContain(state)
  })

  it('reaches every state from a new job, and uses every verb', () => {
    const reached = new Set<string | null>([null])
    for (let before = -1; before !== reached.size; ) {
      before = reached.size
      for (const row of TRANSITIONS) if (reached.has(row.from)) reached.add(row.to)
    }
    expect([...reached].filter((state) => state !== null).sort()).toEqual([...STATES].sort())
    expect(new Set(TRANSITIONS.map((row) => row.verb))).toEqual(new Set(VERBS))
  })

  it('says no row twice, and tells apart the cases of a verb that leads to several states', () => {
    const keys = TRANSITIONS.map(({ from, verb, to }) => `${from} ${verb} ${to}`)
    expect(new Set(keys).size).toBe(keys.length)
    for (const row of TRANSITIONS) {
      const cases = TRANSITIONS.filter(({ from, verb }) => from === row.from && verb === row.verb)
      if (cases.length > 1) expect(cases.map(({ when }) => when)).not.toContain(undefined)
    }
  })

  it('lets no ended job move: retry makes a new one, and purge leaves none', () => {
    for (const state of PHASES.finished) {
      expect(transitionsFrom(state).map(({ verb, to, creates }) => [verb, to, creates])).toEqual([
        ['retry', 'queued', true],
        ['purge', null, undefined],
      ])
    }
    expect(TRANSITIONS.filter((row) => row.creates).map((row) => row.verb)).toEqual([
      'retry',
      'retry',
      'retry',
    ])
  })

  it('leaves a dead letter by redrive and discard only', () => {
    expect(transitionsFrom('dead_letter').map(({ verb, to }) => [verb, to])).toEqual([
      ['redrive', 'queued'],
      ['discard', 'cancelled'],
    ])
  })

  it('takes jobs away by purge only', () => {
    expect(new Set(TRANSITIONS.filter((row) => row.to === null).map((row) => row.verb))).toEqual(
      new Set(['purge']),
    )
  })

  it('makes jobs by enqueue only', () => {
    expect(transitionsFrom(null)).toEqual([{ from: null, verb: 'enqueue', to: 'queued' }])
  })

  it('is drawn with one arrow a row', () => {
    const lines = mermaid().trimEnd().split('\n')
    expect(lines[0]).toBe('stateDiagram-v2')
    expect(lines).toContain('  [*] --> queued: enqueue')
    expect(lines).toContain('  running --> retryable: fail (failures left, due after the backoff)')
    expect(lines).toHaveLength(1 + TRANSITIONS.length + PHASES.finished.length)
    expect(lines).toContain('  done --> [*]: purge (gone for good)')
    for (const line of lines.slice(1))
      expect(line).toMatch(/^ {2}(\[\*\]|\w+) --> (\[\*\]|\w+)(: \w+( \([\w ,]+\))?)?$/)
  })

  it('is written with one line a row', () => {
    const lines = markdownTable().trimEnd().split('\n')
    expect(lines).toHaveLength(2 + TRANSITIONS.length)
    for (const line of lines) expect(line.split('|')).toHaveLength(6)
  })
})
