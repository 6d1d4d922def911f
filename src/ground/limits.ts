// Every bound and default of Rowlock in one table, each with its reason. Validation, docs and messages come from
// here; the SQL functions state the same figures, and a test holds the two together.

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** A bound or default: its value, the unit it is in, and why it is what it is. */
export interface Limit {
  readonly default?: number
  readonly min?: number
  readonly max?: number
  readonly unit: 'ms' | 'bytes' | 'count' | 'days' | 'level' | 'chars'
  readonly why: string
}

const table = <T extends Record<string, Limit>>(rows: T): { readonly [K in keyof T]: T[K] } => rows

export const LIMITS = table({
  nameBytes: {
    min: 1,
    max: 100,
    unit: 'bytes',
    why: 'Queue and kind stand in every index entry of the hot table.',
  },
  keyBytes: {
    min: 1,
    max: 512,
    unit: 'bytes',
    why: 'Keys are indexed; a B-tree entry must stay far below 2,700 bytes.',
  },
  tenantBytes: {
    min: 1,
    max: 200,
    unit: 'bytes',
    why: 'The tenant becomes part of the line, and so of the index.',
  },
  metadataBytes: { max: 4_096, unit: 'bytes', why: 'Metadata travels with the row through every phase.' },
  inputBytes: {
    max: 1_000_000,
    unit: 'bytes',
    why: 'Larger data belongs in a store of its own; the job names it.',
  },
  inlineInputBytes: {
    max: 4_000,
    unit: 'bytes',
    why: 'Above it an input is written once to payload, not again each time its job moves.',
  },
  inputDepth: {
    max: 500,
    unit: 'count',
    why: 'PostgreSQL and JSON.parse recurse; deeper data is a mistake.',
  },
  resultBytes: { max: 64_000, unit: 'bytes', why: 'History keeps results for days.' },
  errorParts: {
    max: 10,
    unit: 'count',
    why: 'Causes and gathered errors kept beside an error; the first ones tell the story.',
  },
  errorBytes: { max: 16_000, unit: 'bytes', why: 'One attempt row must not carry a dump of memory.' },
  causeBytes: { max: 100, unit: 'bytes', why: 'A cause is a word to group by.' },
  reasonBytes: { max: 1_000, unit: 'bytes', why: 'A sentence from an operator.' },
  priority: {
    default: 0,
    min: -10,
    max: 10,
    unit: 'level',
    why: 'A claim looks at each level; 21 are enough to order by.',
  },
  maxAttempts: {
    default: 10,
    min: 1,
    max: 100,
    unit: 'count',
    why: 'With the default backoff ten failures span about an hour.',
  },
  backoffMinMs: {
    default: 5 * SECOND,
    min: 0,
    max: 30 * DAY,
    unit: 'ms',
    why: 'Most faults of a moment are over in seconds.',
  },
  backoffMaxMs: {
    default: HOUR,
    min: 0,
    max: 30 * DAY,
    unit: 'ms',
    why: 'An outage that ends is noticed within the hour.',
  },
  backoffFactor: {
    default: 2,
    min: 1,
    max: 10,
    unit: 'count',
    why: 'Below 1 waits would shrink; above 10 the second failure waits for the cap.',
  },
  backoffSteps: {
    min: 1,
    max: 100,
    unit: 'count',
    why: 'A list needs no more steps than there are attempts.',
  },
  delayMs: {
    default: 0,
    min: 0,
    max: 3_650 * DAY,
    unit: 'ms',
    why: 'Ten years is a plan, more is a mistaken unit.',
  },
  timeoutMs: {
    default: 15 * MINUTE,
    min: 10,
    max: 7 * DAY,
    unit: 'ms',
    why: 'Long enough for most work, short enough to be noticed.',
  },
  jobsPerCall: {
    max: 1_000,
    unit: 'count',
    why: 'One statement of enqueue; larger calls are cut into statements of one transaction.',
  },
  jobsPerChange: {
    max: 1_000,
    unit: 'count',
    why: 'One statement of a verb for many jobs; its locks are held until it commits.',
  },
  bulkStep: {
    default: 500,
    min: 1,
    max: 1_000,
    unit: 'count',
    why: 'Jobs that one step of a bulk change looks at; workers get the rows that it holds when it commits.',
  },
  bytesPerCall: { max: 4_000_000, unit: 'bytes', why: 'Bounds the memory of one statement on both sides.' },
  sourceIdleMs: {
    max: 10 * MINUTE,
    unit: 'ms',
    why: 'A pause of what enqueueMany reads; keys of its transaction are held meanwhile, and dead rows kept.',
  },
  importLineBytes: {
    max: 8_000_000,
    unit: 'bytes',
    why: 'One line of a file of jobs: an input of 1 MB, escaped, and room. Bounds the memory of reading.',
  },
  importWrongLines: {
    max: 20,
    unit: 'count',
    why: 'Wrong lines that are said before a file of jobs is refused; more of them have the same reason.',
  },
  claimJobs: {
    max: 1_000,
    unit: 'count',
    why: 'A job costs less in a larger batch, up to some hundreds; beyond that nothing is gained.',
  },
  kindsPerWorker: { min: 1, max: 200, unit: 'count', why: 'A claim probes each kind at each priority.' },
  queuesPerWorker: { min: 1, max: 200, unit: 'count', why: 'One claim statement serves all of them.' },
  queuesPerList: {
    default: 100,
    min: 1,
    max: 1_000,
    unit: 'count',
    why: 'What waits is counted in each of them.',
  },
  linesPerWorker: {
    max: 2_000,
    unit: 'count',
    why: 'Queues × kinds of one worker: each look probes each of them at each priority.',
  },
  linesPerClaim: { max: 400, unit: 'count', why: 'A claim locks line by line; it must end.' },
  concurrency: { default: 10, min: 1, max: 1_000, unit: 'count', why: 'Per queue and process.' },
  slots: { min: 1, max: 1_000, unit: 'count', why: 'Shared by all queues of one process.' },
  weight: {
    default: 1,
    min: 1,
    max: 100,
    unit: 'count',
    why: 'A share against those of others: beyond a hundred to one, say which queue goes strictly first.',
  },
  prefetch: {
    min: 0,
    max: 100,
    unit: 'count',
    why: 'Claimed jobs that wait for a slot wait for this worker only.',
  },
  leaseMs: {
    default: 30 * SECOND,
    min: SECOND,
    max: HOUR,
    unit: 'ms',
    why: 'A dead worker’s jobs wait at most this long.',
  },
  heartbeatMs: {
    default: 10 * SECOND,
    min: 100,
    max: 20 * 60 * SECOND,
    unit: 'ms',
    why: 'A third of the lease: two may be late.',
  },
  pollMs: { default: 2 * SECOND, min: 50, max: 5 * MINUTE, unit: 'ms', why: 'The net under the wake-ups.' },
  pollListeningMs: {
    default: 10 * SECOND,
    min: 50,
    max: 5 * MINUTE,
    unit: 'ms',
    why: 'While LISTEN is proven the net can hang lower.',
  },
  graceMs: {
    default: 30 * SECOND,
    min: 0,
    max: HOUR,
    unit: 'ms',
    why: 'What supervisors give before they kill.',
  },
  abortGraceMs: {
    default: 5 * SECOND,
    min: 0,
    max: 10 * MINUTE,
    unit: 'ms',
    why: 'After its signal a handler has this long to settle.',
  },
  stuckSlots: {
    default: 5,
    min: 1,
    max: 1_000,
    unit: 'count',
    why: 'A worker with so many deaf handlers is of no use.',
  },
  lossesBeforeAlone: {
    default: 2,
    unit: 'count',
    why: 'A job that was lost twice may be what takes its worker down.',
  },
  aloneWaitMs: {
    default: MINUTE,
    unit: 'ms',
    why: 'A suspect keeps its worker from starting others for this long, and then for as long not at all.',
  },
  flushMs: { default: 5, min: 0, max: SECOND, unit: 'ms', why: 'Outcomes wait this long for company.' },
  flushJobs: { max: 1_000, unit: 'count', why: 'One finish statement.' },
  maintenanceMs: {
    default: 2 * SECOND,
    min: 100,
    max: HOUR,
    unit: 'ms',
    why: 'How often the worker on duty looks for expired leases.',
  },
  maintenanceJobs: { default: 1_000, unit: 'count', why: 'One transaction of the reaper or of a sweep.' },
  daysAhead: { default: 14, unit: 'days', why: 'A missing day must not meet a busy night.' },
  retentionDays: { default: 7, min: 0, max: 90, unit: 'days', why: 'Classes: 0 (none), 1, 7, 30, 90.' },
  auditDays: { default: 90, unit: 'days', why: 'Who paused it, and why, is asked within a quarter.' },
  targetWaitMs: {
    default: MINUTE,
    min: 0,
    max: 30 * DAY,
    unit: 'ms',
    why: 'A queue’s promise: a due job starts within it.',
  },
  maxRunning: {
    min: 1,
    max: 100_000,
    unit: 'count',
    why: 'Jobs of a queue that run at once over all workers; each claim counts them.',
  },
  rateStarts: {
    min: 1,
    max: 100_000,
    unit: 'count',
    why: 'More in one time is better said of a shorter one.',
  },
  ratePerMs: {
    min: 1,
    max: 30 * DAY,
    unit: 'ms',
    why: 'Instants have microseconds; what is said of more than a month is a quota.',
  },
  rateBurst: {
    min: 1,
    max: 100_000,
    unit: 'count',
    why: 'The default is what starts in 100 ms: a claim may be late by so much and nothing is lost.',
  },
  maxWaiting: {
    min: 1,
    max: 1_000_000_000,
    unit: 'count',
    why: 'A bound on what may pile up; the count is about.',
  },
  restartMaxMs: {
    default: 30 * SECOND,
    unit: 'ms',
    why: 'A loop that failed comes back at least this often, for ever.',
  },
  snoozeMs: { min: 0, max: 3_650 * DAY, unit: 'ms', why: 'As for a delay.' },
  filterEntries: {
    min: 1,
    max: 100,
    unit: 'count',
    why: 'Each entry of a list is compared with each job that is looked at.',
  },
  errorLineBytes: { max: 800, unit: 'bytes', why: 'The 200 characters by which dead letters are grouped.' },
  pageJobs: {
    default: 50,
    min: 1,
    max: 1_000,
    unit: 'count',
    why: 'A page of a list is for people and loops.',
  },
  lookJobs: {
    max: 50_000,
    unit: 'count',
    why: 'A list looks at so many jobs a call, so that none reads all of history; it says where to go on.',
  },
  countJobs: {
    max: 10_000,
    unit: 'count',
    why: 'Counted exactly up to here, since few decisions need more; beyond it about.',
  },
  countLookJobs: {
    max: 100_000,
    unit: 'count',
    why: 'A count looks at so many jobs; of older ones it takes samples.',
  },
  deadLettersLooked: {
    max: 20_000,
    unit: 'count',
    why: 'Groups are made of the newest; a flood of older ones tells nothing more.',
  },
})

/** The retention classes a queue can have, in days. 0 keeps no history. */
export const RETENTION_CLASSES_DAYS = [0, 1, 7, 30, 90] as const
