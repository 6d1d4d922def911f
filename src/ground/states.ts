// The states of a job and the verbs between them, as one table that code, docs and tests share.

/** Every state a job can be in. */
export const STATES = [
  'queued',
  'retryable',
  'running',
  'done',
  'failed',
  'cancelled',
  'dead_letter',
] as const
/** The state of a job. */
export type State = (typeof STATES)[number]

/** Which table holds which states. */
export const PHASES = {
  waiting: ['queued', 'retryable'],
  running: ['running'],
  finished: ['done', 'failed', 'cancelled'],
  dead_letter: ['dead_letter'],
} as const satisfies Record<string, readonly State[]>
/** The table a job lives in. */
export type Phase = keyof typeof PHASES

/** Every verb that moves a job, or that changes one where it is. */
export const VERBS = [
  'enqueue',
  'claim',
  'complete',
  'fail',
  'snooze',
  'hand_back',
  'reap',
  'cancel',
  'expire',
  'run_now',
  'prioritize',
  'redrive',
  'discard',
  'retry',
  'purge',
] as const
/** What can happen to a job. */
export type Verb = (typeof VERBS)[number]

/** The verbs that can be done to many jobs in one call, and to all that a filter finds. */
export const BULK_VERBS = [
  'cancel',
  'run_now',
  'prioritize',
  'redrive',
  'discard',
  'retry',
  'purge',
] as const satisfies readonly Verb[]
/** A verb that can be done to many jobs. */
export type BulkVerb = (typeof BULK_VERBS)[number]

/** One row of the table: a verb takes a job from one state to another. */
export interface Transition {
  /** Null: there was no job before. */
  readonly from: State | null
  readonly verb: Verb
  /** Null: there is no job any more. */
  readonly to: State | null
  /** In which case, where the verb has several, or what else it does. */
  readonly when?: string
  /** The job in `from` stays as it is; the one in `to` is a new job. */
  readonly creates?: true
}

/** Every transition there is; what is not here does not happen. */
export const TRANSITIONS: readonly Transition[] = [
  { from: null, verb: 'enqueue', to: 'queued' },
  { from: 'queued', verb: 'claim', to: 'running' },
  { from: 'retryable', verb: 'claim', to: 'running' },
  { from: 'running', verb: 'complete', to: 'done' },
  { from: 'running', verb: 'fail', to: 'retryable', when: 'failures left; due after the backoff' },
  { from: 'running', verb: 'fail', to: 'dead_letter', when: 'failures used up' },
  { from: 'running', verb: 'fail', to: 'failed', when: 'permanent error or invalid input' },
  { from: 'running', verb: 'snooze', to: 'queued', when: 'due later' },
  { from: 'running', verb: 'hand_back', to: 'queued', when: 'available_at kept' },
  { from: 'running', verb: 'reap', to: 'queued', when: 'it had not started' },
  { from: 'running', verb: 'reap', to: 'retryable', when: 'it had started; failures left' },
  { from: 'running', verb: 'reap', to: 'dead_letter', when: 'it had started; failures used up' },
  { from: 'queued', verb: 'cancel', to: 'cancelled' },
  { from: 'retryable', verb: 'cancel', to: 'cancelled' },
  { from: 'running', verb: 'cancel', to: 'cancelled', when: 'asked; settled when the handler ends' },
  { from: 'queued', verb: 'expire', to: 'cancelled', when: 'reason expired' },
  { from: 'retryable', verb: 'expire', to: 'cancelled', when: 'reason expired' },
  { from: 'queued', verb: 'run_now', to: 'queued', when: 'due at once' },
  { from: 'retryable', verb: 'run_now', to: 'retryable', when: 'due at once' },
  { from: 'queued', verb: 'prioritize', to: 'queued', when: 'other priority' },
  { from: 'retryable', verb: 'prioritize', to: 'retryable', when: 'other priority' },
  { from: 'dead_letter', verb: 'redrive', to: 'queued', when: 'failures 0' },
  { from: 'dead_letter', verb: 'discard', to: 'cancelled', when: 'reason discarded' },
  { from: 'done', verb: 'retry', to: 'queued', when: 'as a new job', creates: true },
  { from: 'failed', verb: 'retry', to: 'queued', when: 'as a new job', creates: true },
  { from: 'cancelled', verb: 'retry', to: 'queued', when: 'as a new job', creates: true },
  { from: 'done', verb: 'purge', to: null, when: 'gone for good' },
  { from: 'failed', verb: 'purge', to: null, when: 'gone for good' },
  { from: 'cancelled', verb: 'purge', to: null, when: 'gone for good' },
]

/** The transitions that leave a state, or, for null, that make a job. */
export function transitionsFrom(state: State | null): readonly Transition[] {
  return TRANSITIONS.filter((row) => row.from === state)
}

/** The states that a verb applies to. */
export function statesOf(verb: Verb): readonly State[] {
  return STATES.filter((state) => TRANSITIONS.some((row) => row.from === state && row.verb === verb))
}

/**
 * The states that a bulk change is of where its filter names none. `run_now` leaves what is due as it is, so of queued
 * jobs it takes those that are scheduled.
 */
export function bulkStatesOf(verb: BulkVerb): readonly (State | 'scheduled')[] {
  return verb === 'run_now' ? ['scheduled', 'retryable'] : statesOf(verb)
}

/** The phase, and so the table, that holds a state. */
export function phaseOf(state: State): Phase {
  return (Object.keys(PHASES) as Phase[]).find((phase) =>
    (PHASES[phase] as readonly State[]).includes(state),
  )!
}

/** The table as a Mermaid state diagram, for the docs. */
export function mermaid(): string {
  // A semicolon ends a statement in Mermaid, so a comma stands for it.
  const label = ({ verb, when }: Transition) =>
    when === undefined ? verb : `${verb} (${when.replaceAll(';', ',')})`
  const lines = TRANSITIONS.map((row) => `  ${row.from ?? '[*]'} --> ${row.to ?? '[*]'}: ${label(row)}`)
  const ends = PHASES.finished.map((state) => `  ${state} --> [*]`)
  return ['stateDiagram-v2', ...lines, ...ends, ''].join('\n')
}

/** The table in Markdown, for the docs. */
export function markdownTable(): string {
  const rows = TRANSITIONS.map(
    ({ from, verb, to, when }) => `| ${from ?? '–'} | ${verb} | ${to ?? '–'} | ${when ?? ''} |`,
  )
  return ['| from | verb | to | when |', '| --- | --- | --- | --- |', ...rows, ''].join('\n')
}
