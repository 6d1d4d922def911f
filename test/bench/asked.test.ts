import { expect, test } from 'vitest'
import { asked } from '../../bench/kit/asked.ts'

const KNOWN = ['claims', 'cost', 'drain', 'enqueue']

test('nothing asked is a list', () => {
  expect(asked([], KNOWN).kind).toBe('list')
  expect(asked(['--help'], KNOWN).kind).toBe('list')
})

test('a scenario runs with what was asked of it', () => {
  expect(asked(['drain', '--quick', '--json', '--rounds', '3', '--pg', '14'], KNOWN)).toEqual({
    kind: 'run',
    names: ['drain'],
    quick: true,
    json: true,
    yes: false,
    rounds: 3,
    major: 14,
    among: undefined,
  })
})

test('all is each scenario once', () => {
  expect(asked(['all', 'drain'], KNOWN)).toMatchObject({ names: KNOWN })
  expect(asked(['drain', 'drain'], KNOWN)).toMatchObject({ names: ['drain'] })
})

test('a wrong word is answered with the nearest right one', () => {
  expect(asked(['drian'], KNOWN)).toEqual({
    kind: 'wrong',
    why: "there is no scenario 'drian'; did you mean 'drain'?",
  })
  expect(asked(['xylophone'], KNOWN)).toMatchObject({ why: expect.stringContaining('known: claims, cost') })
  expect(asked(['drain', '--quik'], KNOWN)).toMatchObject({ why: expect.stringContaining("'quick'") })
})

test('numbers out of their bounds are refused', () => {
  for (const args of [
    ['--rounds', '0'],
    ['--rounds', 'x'],
    ['--rounds', '1.5'],
    ['--pg', '9'],
  ]) {
    expect(asked(['drain', ...args], KNOWN).kind).toBe('wrong')
  }
})
