// What was asked on the command line of the bench, checked before anything is started.

import { parseArgs } from 'node:util'
import { suggest } from '../../src/ground/nearest.ts'

/** A scenario, several, or none. */
export type Question =
  | { readonly kind: 'list' }
  | { readonly kind: 'report' }
  | { readonly kind: 'wrong'; readonly why: string }
  | Asked

/** What to run. */
export interface Asked {
  readonly kind: 'run'
  readonly names: readonly string[]
  readonly quick: boolean
  readonly json: boolean
  readonly yes: boolean
  readonly rounds: number | undefined
  readonly major: number
  /** Only these contenders; such a run is not recorded. */
  readonly among: readonly string[] | undefined
}

export const HELP = `usage: npm run bench -- <scenario> [--quick] [--json] [--rounds n] [--pg n] [--among a,b] [--yes]

  --quick      a trial of a minute or two; never published over a whole run
  --json       the last line is the result: scenario, rounds, ours, peers, ratios, counted
  --rounds n   default 5; 2 of a quick run
  --pg n       14 to 18, default 18
  --among a,b  only these contenders, for looking closer; such a run is not recorded
  --yes        run what needs much disk without asking

  report       make RESULTS.md and its plots anew from bench/results/, without measuring

Scenarios:`

/** Whoever slips is told the nearest right word. */
export function asked(args: readonly string[], known: readonly string[]): Question {
  let parsed: ReturnType<typeof parse>
  try {
    parsed = parse(args)
  } catch (error) {
    const option = /'(--?[^']*)'/.exec((error as Error).message)?.[1]
    const hint = option === undefined ? '' : `; ${suggest(option.replace(/^-+/, ''), OPTIONS)}`
    return { kind: 'wrong', why: `${(error as Error).message.split('.')[0]}${hint}` }
  }
  const { values, positionals } = parsed
  if (values.help || positionals.length === 0) return { kind: 'list' }
  if (positionals.length === 1 && positionals[0] === 'report') return { kind: 'report' }
  for (const word of positionals) {
    if (known.includes(word) || word === 'all') continue
    return {
      kind: 'wrong',
      why: `there is no scenario '${word}'; ${suggest(word, [...known, 'all', 'report'])}`,
    }
  }
  const rounds = values.rounds === undefined ? undefined : Number(values.rounds)
  if (rounds !== undefined && !(Number.isInteger(rounds) && rounds >= 1 && rounds <= 100)) {
    return { kind: 'wrong', why: '--rounds takes a whole number from 1 to 100' }
  }
  const major = Number(values.pg)
  if (![14, 15, 16, 17, 18].includes(major)) return { kind: 'wrong', why: '--pg takes 14, 15, 16, 17 or 18' }
  const names = positionals.includes('all') ? known : [...new Set(positionals)]
  const { quick, json, yes } = values
  return { kind: 'run', names, quick, json, yes, rounds, major, among: values.among?.split(',') }
}

const OPTIONS = ['quick', 'json', 'rounds', 'pg', 'yes', 'among', 'help']

function parse(args: readonly string[]) {
  return parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      quick: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      yes: { type: 'boolean', default: false },
      rounds: { type: 'string' },
      among: { type: 'string' },
      pg: { type: 'string', default: '18' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
}
