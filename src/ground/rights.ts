// Who may do what: each function that somebody calls, and the roles whose work needs it. The grants in the docs and the
// reference of functions are made from here; a test finds a function that nobody was thought of for.

/** What one role needs: functions to call, and tables and views to read. Nobody writes a table. */
export interface Rights {
  readonly does: string
  readonly functions: readonly string[]
  readonly reads: readonly string[]
}

const LOOKS = [
  ...['jobs', 'jobs_page', 'count_jobs', 'story', 'why', 'dead_letters', 'changes', 'changes_page'],
  ...['queues', 'workers', 'bulks', 'bulks_page', 'unhandled'],
  ...['filter_fault', 'error_line', 'verb_states', 'length_ms', 'now'],
] as const
const CHANGES = [
  ...['cancel', 'run_now', 'prioritize', 'redrive', 'discard', 'retry', 'purge'],
  ...['cancel_many', 'run_now_many', 'prioritize_many', 'redrive_many', 'discard_many', 'retry_many'],
  ...['purge_many', 'begin_bulk', 'run_bulk', 'stop_bulk', 'pause', 'resume', 'set_queue'],
] as const
const READS = [
  ...['job', 'attempt', 'audit', 'bulk', 'waiting', 'running', 'finished', 'dead_letter'],
  ...['queue', 'worker'],
] as const

/** The roles, from the narrowest on. A role of yours can be several of them. */
export const RIGHTS = {
  producer: {
    does: 'enqueues',
    functions: [
      'enqueue',
      'enqueue_many',
      'store',
      'store_alike',
      'begin_import',
      'import_jobs',
      'end_import',
      'now',
    ],
    reads: [],
  },
  worker: {
    does: 'runs jobs, and keeps the house: reaps, sweeps, makes and drops days',
    functions: [
      ...['register', 'heartbeat', 'retire', 'channel', 'sleep', 'claim', 'start', 'finish'],
      ...['complete', 'fail', 'snooze', 'abandon', 'hand_back', 'hold', 'complete_in_transaction'],
      ...['reap', 'sweep', 'expire', 'unhandled', 'make_days', 'days_due', 'drop_day', 'now'],
    ],
    reads: ['installation', 'migration', 'routine', 'running', 'payload', 'finished', 'attempt'],
  },
  viewer: {
    does: 'looks at everything, inputs and results included, and changes nothing',
    functions: LOOKS,
    reads: READS,
  },
  operator: {
    does: 'looks as a viewer does, and changes what waits, runs and ended',
    functions: [...LOOKS, ...CHANGES],
    reads: READS,
  },
} as const satisfies Record<string, Rights>

/** A set of rights by its name. */
export type Role = keyof typeof RIGHTS

/** The statements that give a role of the database these rights; they may be run again after each release. */
export function grants(role: Role, to: string, schema = 'rowlock'): string {
  const { functions, reads } = RIGHTS[role]
  const list = (names: readonly string[]) => wrapped(names.map((name) => `${schema}.${name}`))
  const lines = [`grant usage on schema ${schema} to ${to};`]
  if (reads.length > 0) lines.push(`grant select on\n${list(reads)}\n  to ${to};`)
  lines.push(`grant execute on function\n${list(functions)}\n  to ${to};`)
  return lines.join('\n')
}

/** Names with commas, in lines that fit a screen. */
function wrapped(names: readonly string[]): string {
  const lines = ['']
  for (const [index, name] of names.entries()) {
    const word = index < names.length - 1 ? `${name},` : name
    const line = lines.at(-1)!
    if (line.length + word.length > 100) lines.push(`  ${word}`)
    else lines[lines.length - 1] = line === '' ? `  ${word}` : `${line} ${word}`
  }
  return lines.join('\n')
}
