// `rowlock workers`: who is there to run jobs.

import { Command } from 'commander'
import type { WorkerRow } from '../index.ts'
import { count, span } from './amounts.ts'
import type { Shell } from './shell.ts'
import { type Column, table } from './table.ts'

export function workersCommand(shell: Shell): Command {
  return new Command('workers')
    .summary('list workers with their slots, queues and kinds')
    .description(
      'List workers. BEAT is how long ago one was heard of, ' +
        'LEASE how long it may keep its jobs without being heard of.',
    )
    .addHelpText(
      'after',
      "\nExamples:\n  rowlock workers\n  rowlock workers --json | jq -r 'select(.isAlive) | [.name, .kinds] | @json'",
    )
    .action(shell.run(() => run(shell)))
}

async function run(shell: Shell): Promise<void> {
  const rows = await (await shell.client()).workers()
  if (shell.isJson) return shell.ndjson(rows)
  if (rows.length === 0) return shell.say('no worker is registered: rowlock work <module> starts one')
  await shell.print(table(rows, columns(new Date()), shell).join('\n'))
}

const columns = (now: Date): readonly Column<WorkerRow>[] => [
  { head: 'WORKER', of: (row) => row.id.slice(0, 8) },
  { head: 'NAME', of: (row) => row.name ?? '', isOptional: true, min: 16, weight: 6 },
  { head: 'STATE', of: stateOf, style: (row) => (row.isAlive ? (row.draining ? 'yellow' : 'green') : 'red') },
  { head: 'BUSY', of: (row) => `${count(row.running)}/${count(row.slots)}`, isNumber: true },
  { head: 'PREFETCHED', of: (row) => count(row.prefetched), isNumber: true, weight: 2 },
  {
    head: 'STUCK',
    of: (row) => (row.stuck === 0 ? '' : count(row.stuck)),
    isNumber: true,
    isOptional: true,
    style: () => 'red',
  },
  { head: 'QUEUES', of: (row) => names(row.queues), min: 14, weight: 5 },
  { head: 'KINDS', of: (row) => names(row.kinds), min: 16 },
  {
    head: 'UP',
    of: (row) => span(Math.max(0, now.getTime() - row.startedAt.getTime())),
    isNumber: true,
    weight: 4,
  },
  {
    head: 'BEAT',
    of: (row) => span(Math.max(0, now.getTime() - row.beatAt.getTime())),
    isNumber: true,
    weight: 3,
  },
  { head: 'LEASE', of: (row) => span(row.leaseMs), isNumber: true, weight: 0 },
  { head: 'RELEASE', of: (row) => row.release, weight: 1 },
]

const stateOf = (row: WorkerRow): string => (row.isAlive ? (row.draining ? 'draining' : 'alive') : 'gone')

function names(value: unknown): string {
  if (value === null || value === undefined) return 'all'
  const list = Array.isArray(value) ? value : Object.keys(value)
  return list.length === 0
    ? 'all'
    : list.map((each) => (typeof each === 'string' ? each : JSON.stringify(each))).join(' ')
}
