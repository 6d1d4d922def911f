// One verb for all jobs that a filter finds, in steps that commit with how far they got: stopped, killed or cut off, it
// can go on. Which jobs, and what becomes of each, is SQL's; here is the pace.

import { setTimeout as sleep } from 'node:timers/promises'
import { RowlockError } from '../ground/errors.ts'
import { FILTER_NAMES, filterText, type JobFilter } from '../ground/filter.ts'
import { checkId } from '../ground/id.ts'
import { checkInteger } from '../ground/integer.ts'
import { LIMITS } from '../ground/limits.ts'
import { checkOptions, suggest } from '../ground/nearest.ts'
import { show } from '../ground/show.ts'
import { BULK_VERBS, type BulkVerb } from '../ground/states.ts'
import type { Database } from './database.ts'
import { checkPriority } from './job-verbs.ts'
import { type Answer, type Refusal, readAnswer, type WireAnswer } from './many.ts'
import { named } from './named.ts'
import { checkOperator, type Operator } from './operator.ts'

/** How far a bulk change has got. */
export interface BulkRow {
  readonly id: string
  readonly verb: BulkVerb
  /** Which jobs, with the states that the verb applies to where none was named. */
  readonly filter: JobFilter
  /** The new priority, where that is what is changed. */
  readonly args: { readonly priority?: number }
  readonly actor: string | null
  readonly reason: string | null
  readonly startedAt: Date
  /** When its last step was done. */
  readonly beatAt: Date
  readonly endedAt: Date | null
  /** Null: it can go on. */
  readonly outcome: 'done' | 'stopped' | null
  /** Jobs with a higher id came later and are left alone. */
  readonly uptoId: string
  /** Jobs up to this id have been seen. */
  readonly afterId: string
  /** Jobs that the filter found when it began; `about` says that they were not counted to the end. */
  readonly matched: number
  readonly about: boolean
  readonly changed: number
  /**
   * Jobs that were seen and left as they were, by why. `running`: they ran while a verb of waiting jobs came by, and
   * too many did to come to each of them again.
   */
  readonly refused: Readonly<Partial<Record<Refusal | 'running', number>>>
  /** Jobs that were busy, or ran though the verb is of waiting ones: tried once more at the end, up to 10,000. */
  readonly again: number
}

/** What a bulk change takes besides its filter. */
export interface BulkOptions extends Operator {
  /** For `prioritize`. Unit: −10 to 10, higher first. */
  readonly priority?: number | undefined
  /** Begin although the same change, of the same filter, was begun and has not ended. Default false. */
  readonly anew?: boolean | undefined
}

/** How to run a bulk change. */
export interface BulkRunOptions {
  /** Ends it between two steps; it can go on later. */
  readonly signal?: AbortSignal | undefined
  /** Told after each step. */
  readonly onStep?: ((row: BulkRow, answers: readonly Answer[]) => void) | undefined
  /** Jobs of one step. Unit: 1 to 1,000, default 500. */
  readonly limit?: number | undefined
}

/** Steps that met another transaction in opposite order were undone: so often one is done again. */
const STEP_TRIES = 10
const UNDONE = new Set(['40P01', '40001', '55P03'])
const PAUSE_MIN_MS = 2

/** A bulk change that was begun: {@link run} does it. */
export class Bulk {
  readonly id: string
  readonly #database: Database
  #row: BulkRow

  /** Made by `rowlock.bulk` and `rowlock.openBulk`. */
  constructor(database: Database, row: BulkRow) {
    this.id = row.id
    this.#database = database
    this.#row = row
  }

  /** As it was after the last step that this object has seen. */
  get row(): BulkRow {
    return this.#row
  }

  /**
   * Do it, step by step, until it is done, stopped by somebody, or aborted by the `signal`: then `outcome` is null, and
   * it can go on from there, here or in another process. Two processes that run the same one do no harm.
   *
   * Between two steps it pauses for as long as the step took, so that half of the time is the workers'.
   *
   * Transaction: one for each step.
   * Errors: INVALID_OPTION; whatever a step throws: what was done stays done, and `run` goes on from there.
   * Source: sql/functions/run_bulk.sql
   */
  async run(options: BulkRunOptions = {}): Promise<BulkRow> {
    checkOptions(options, ['signal', 'onStep', 'limit'], 'run')
    const { signal, onStep } = options
    const { min, max, default: standard } = LIMITS.bulkStep
    const limit = checkInteger(options.limit ?? standard, { name: 'limit', min, max })
    while (this.#row.outcome === null && !signal?.aborted) {
      const began = performance.now()
      const answers = await this.#step(limit)
      const tookMs = performance.now() - began
      onStep?.(this.#row, answers)
      if (this.#row.outcome === null) await pause(Math.max(tookMs, PAUSE_MIN_MS), signal)
    }
    return this.#row
  }

  /**
   * Leave it at what was done. A step in progress is waited for, up to 2 s. One that has ended is left as it is.
   *
   * Errors: INVALID_OPTION, BULK_NOT_FOUND, BULK_BUSY: nothing was changed, ask again.
   * Source: sql/functions/stop_bulk.sql
   */
  async stop(operator: Operator = {}): Promise<BulkRow> {
    const { actor, reason } = checkOperator(operator)
    const args = '$1::text::bigint, $2::text, $3::text'
    const values = [this.id, actor ?? null, reason ?? null]
    this.#row = read(await this.#database.call('stop_bulk', args, values, { write: 'stop_bulk' }))
    return this.#row
  }

  async #step(limit: number): Promise<readonly Answer[]> {
    for (let tries = 1; ; tries++) {
      try {
        const { answers, ...row } = await this.#database.call<WireRow & { answers: WireAnswer[] }>(
          'run_bulk',
          '$1::text::bigint, $2::text::integer',
          [this.id, String(limit)],
          { write: 'run_bulk' },
        )
        this.#row = read(row)
        return answers.map(readAnswer)
      } catch (error) {
        const { code } = (error ?? {}) as { code?: unknown }
        if (tries >= STEP_TRIES || !UNDONE.has(String(code))) throw error
        await pause(Math.random() * 50 * tries)
      }
    }
  }
}

/**
 * Begin a bulk change: checked and counted, nothing changed yet.
 *
 * Errors: INVALID_OPTION, with `path`; a filter that restricts nothing must say `all: true`; BULK_OPEN, with `bulk`.
 * Source: sql/functions/begin_bulk.sql
 */
export async function beginBulk(
  database: Database,
  verb: BulkVerb,
  filter: JobFilter,
  options: BulkOptions,
): Promise<Bulk> {
  if (!BULK_VERBS.includes(verb)) {
    const message = `there is no bulk change ${show(verb, 40)}; ${suggest(String(verb), BULK_VERBS)}`
    throw new RowlockError('INVALID_OPTION', message, { path: 'verb' })
  }
  const { actor, reason, priority, anew } = checkOperator(options, ['priority', 'anew'])
  if (anew !== undefined && typeof anew !== 'boolean') {
    throw new RowlockError('INVALID_OPTION', `anew must be true or false; got ${show(anew)}`, {
      path: 'anew',
    })
  }
  const args = {
    ...(priority !== undefined && { priority: checkPriority(priority) }),
    ...(anew && { anew }),
  }
  const row = await database.call<WireRow>(
    'begin_bulk',
    '$1::text, $2::text::jsonb, $3::text::jsonb, $4::text, $5::text',
    [verb, filterText(filter), JSON.stringify(args), actor ?? null, reason ?? null],
    { write: 'begin_bulk' },
  )
  return new Bulk(database, read(row))
}

/** A bulk change by its id. Errors: INVALID_OPTION, BULK_NOT_FOUND. Source: sql/functions/bulks_page.sql */
export async function openBulk(database: Database, id: string): Promise<Bulk> {
  const [row] = await rows(database, 1, checkId(id))
  if (row === undefined) throw new RowlockError('BULK_NOT_FOUND', `no bulk change has the id ${id}`)
  return new Bulk(database, row)
}

/** Bulk changes, the newest first. Errors: INVALID_OPTION. Source: sql/functions/bulks_page.sql */
export async function listBulks(database: Database, limit: unknown): Promise<readonly BulkRow[]> {
  return rows(database, checkInteger(limit, { name: 'limit', min: 1, max: LIMITS.pageJobs.max }), null)
}

type WireRow = Record<string, unknown>

async function rows(database: Database, limit: number, id: string | null): Promise<BulkRow[]> {
  const args = '$1::text::integer, $2::text::bigint'
  const found = await database.call<WireRow[]>('bulks_page', args, [String(limit), id])
  return found.map(read)
}

const read = (row: WireRow): BulkRow => withFilter(named(row))

/** The filter in the words of TypeScript. */
function withFilter(row: WireRow): BulkRow {
  const wire = row.filter as Record<string, unknown>
  const filter = FILTER_NAMES.map((name) => [
    name,
    wire[name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)],
  ])
  return {
    ...row,
    filter: Object.fromEntries(filter.filter(([, value]) => value !== undefined)),
  } as unknown as BulkRow
}

async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  await sleep(ms, undefined, signal === undefined ? {} : { signal }).catch((error) => {
    if (!signal?.aborted) throw error
  })
}
