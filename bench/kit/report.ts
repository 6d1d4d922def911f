// RESULTS.md and its plots, made from the results that the bench wrote: nobody edits a figure.

import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Machine } from './machine.ts'
import { drawn } from './plot.ts'
import type { ScenarioResult, Spread, Table, Target } from './scenario.ts'

/** One result as it stands in bench/results/. */
export interface Recorded {
  readonly scenario: string
  readonly title: string
  readonly how: string
  readonly quick: boolean
  readonly rounds: number
  readonly date: string
  readonly tookS: number
  readonly machine: Machine
  readonly servers: readonly { readonly name: string; readonly settings: Readonly<Record<string, unknown>> }[]
  readonly result: ScenarioResult
}

const HEAD = `# Results

Written by \`npm run bench\` from the files in [results](results); edit nothing here. Figures are medians of rounds
that took turns (A B C A B C), with the lowest and the highest in brackets. **Counted** figures come from the system's
and the server's own accounting, and other load on the machine hardly moves them; read them first. Times and rates are
to be read as ratios between those that took part in the same run. What it all means:
[performance](../docs/performance.md).
`

/** Make bench/RESULTS.md and bench/plots/ anew. A whole run stands before a quick one of the same scenario. */
export function writeReport(folder: string): void {
  const results = read(join(folder, 'results'))
  const plots = join(folder, 'plots')
  rmSync(plots, { recursive: true, force: true })
  mkdirSync(plots, { recursive: true })
  for (const { scenario, result } of results) {
    for (const plot of result.plots ?? []) {
      writeFileSync(join(plots, `${scenario}-${plot.name}.svg`), drawn(plot))
    }
  }
  writeFileSync(join(folder, 'RESULTS.md'), report(results))
}

function read(folder: string): Recorded[] {
  if (!existsSync(folder)) return []
  const files = readdirSync(folder).filter((file) => file.endsWith('.json'))
  const all = files.map((file) => JSON.parse(readFileSync(join(folder, file), 'utf8')) as Recorded)
  const shown = all.filter(
    (each) => !each.quick || !all.some((other) => other.scenario === each.scenario && !other.quick),
  )
  return shown.sort((a, b) => (a.scenario < b.scenario ? -1 : 1))
}

/** The text of RESULTS.md. */
export function report(results: readonly Recorded[]): string {
  const list = results.map(({ scenario, title }) => `- [${scenario}](#${scenario}): ${title}`)
  return [HEAD, list.join('\n'), ...results.map(section), ''].join('\n')
}

/** What RESULTS.md says of one result. */
export function section(recorded: Recorded): string {
  const { scenario, title, how, quick, rounds, date, tookS, machine, servers, result } = recorded
  const where = `${machine.cpus} × ${machine.cpu}, ${machine.memoryGb} GB, ${machine.system}, Node.js ${machine.node}`
  const load = `load ${machine.load[0]} (${machine.load[1]} over 15 minutes)`
  const parts = [
    `## ${scenario}`,
    `${title}`,
    quick ? '> **A quick run**: a trial with few jobs and rounds, published only until a whole one is.' : '',
    how,
    `${date.slice(0, 16).replace('T', ' ')} UTC, ${rounds} rounds, ${tookS} s. ${where}; ${load}.`,
    ...servers.map(({ name, settings }) => `${name}${settingsText(settings)}`),
    targetsText(result.targets),
    ...result.tables.map(tableText),
    ...(result.plots ?? []).map(({ name, title: alt }) => `![${alt}](plots/${scenario}-${name}.svg)`),
    (result.notes ?? []).map((note) => `- ${note}`).join('\n'),
    (result.missing ?? []).map((line) => `- missing: ${line}`).join('\n'),
    contendersText(result),
  ]
  return `\n${parts.filter((part) => part !== '').join('\n\n')}`
}

function settingsText(settings: Readonly<Record<string, unknown>>): string {
  const list = Object.entries(settings).map(([name, value]) => `\`${name} = ${value}\``)
  return list.length === 0 ? '.' : `: ${list.join(', ')}; everything else as it comes.`
}

function targetsText(targets: readonly Target[]): string {
  if (targets.length === 0) return ''
  const rows = targets.map((target) => {
    const { what, is, atLeast, atMost, stretch } = target
    const bound = atLeast !== undefined ? `≥ ${number(atLeast)}` : `≤ ${number(atMost ?? Number.NaN)}`
    return [what, number(is), `${bound}${stretch ? ' (stretch)' : ''}`, reached(target) ? 'yes' : 'no']
  })
  return tableText({ title: '', columns: ['to reach', 'is', 'bound', 'reached'], rows })
}

/** Whether a figure is within its bound. */
export function reached({ is, atLeast, atMost }: Target): boolean {
  return (atLeast === undefined || is >= atLeast) && (atMost === undefined || is <= atMost)
}

/** A table in Markdown; numbers to the right. */
export function tableText({ title, columns, rows }: Table): string {
  const isNumber = columns.map((_, n) => rows.every((row) => typeof row[n] !== 'string') && rows.length > 0)
  const lines = [
    `| ${columns.join(' | ')} |`,
    `| ${isNumber.map((right) => (right ? '---:' : '---')).join(' | ')} |`,
    ...rows.map((row) => `| ${row.map(cell).join(' | ')} |`),
  ]
  return [...(title === '' ? [] : [`**${title}**`, '']), ...lines].join('\n')
}

function cell(value: Table['rows'][number][number]): string {
  if (value === null) return '–'
  if (typeof value === 'string') return value
  if (typeof value === 'number') return number(value)
  return spreadText(value)
}

/** The median, and in brackets the lowest and the highest where there was more than one round. */
export function spreadText({ median, min, max, rounds }: Spread): string {
  return rounds.length > 1 ? `${number(median)} (${number(min)}–${number(max)})` : number(median)
}

/** Three digits that count, thousands apart. */
export function number(value: number): string {
  if (!Number.isFinite(value)) return '–'
  const exact = Math.abs(value) < 1000 ? Number(value.toPrecision(3)) : Math.round(value)
  return exact.toLocaleString('en-US', { maximumFractionDigits: 8 })
}

function contendersText({ contenders = [] }: ScenarioResult): string {
  if (contenders.length === 0) return ''
  const list = contenders.map(({ name, configuration }) => `- \`${name}\`: ${configuration}`)
  return [
    '<details><summary>Who took part, and how each is configured</summary>',
    '',
    ...list,
    '',
    '</details>',
  ].join('\n')
}
