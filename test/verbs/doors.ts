// The three ways to do a verb: TypeScript, the command line, SQL. Each answers in the same words, so that they can be
// compared: `due`, `wrong_state done`, `retried 2`, with ids as places in the order of the jobs.

import { codeOfSqlstate } from '../../src/ground/errors.ts'
import type { BulkVerb } from '../../src/ground/states.ts'
import type { Answer, QueueSettings, Rowlock } from '../../src/index.ts'
import { call, linesOf } from '../support/cli.ts'
import type { TestRowlock } from '../support/database.ts'

export const BY = { actor: 'ada', reason: 'by hand' } as const
export const PRIORITY = 7

/** One answer; ids stay what they are until they are compared. */
export type Said = readonly [
  answer: string,
  state?: string | undefined,
  holder?: string | undefined,
  newJobId?: string | undefined,
]

export interface Door {
  one(verb: BulkVerb, id: string): Promise<Said>
  several(verb: BulkVerb, ids: readonly string[]): Promise<readonly Said[]>
  filtered(verb: BulkVerb, queues: readonly string[]): Promise<readonly Said[]>
  /** True: it changed something. */
  pause(queue: string): Promise<boolean | string>
  resume(queue: string): Promise<boolean | string>
  set(queue: string, settings: Settings): Promise<string>
  /** How it refuses a priority beyond the bounds, and an id that is none. */
  wrong(id: string): Promise<readonly string[]>
}

export interface Settings {
  readonly retentionDays?: number
  readonly targetWait?: `${number}s`
  readonly concurrency?: number | null
  readonly maxRunning?: number
  readonly rate?: { readonly starts: number; readonly per: `${number}s`; readonly burst: number }
}

/** What a verb that answers nothing has done. */
const DONE: Readonly<Record<BulkVerb, string>> = {
  cancel: '',
  retry: 'retried',
  run_now: 'due',
  prioritize: 'prioritized',
  redrive: 'redriven',
  discard: 'discarded',
  purge: 'purged',
}

const REFUSED: Readonly<Record<string, string>> = {
  JOB_NOT_FOUND: 'not_found',
  JOB_BUSY: 'busy',
  WRONG_STATE: 'wrong_state',
  DEDUPE_KEY_TAKEN: 'dedupe_key_taken',
}

const said = ({ answer, detail }: Pick<Answer, 'answer' | 'detail'>): Said => [
  answer,
  detail?.state,
  detail?.holder,
  detail?.newJobId,
]

const refused = (error: { code?: string; state?: string; holder?: string }): Said => [
  REFUSED[error.code ?? ''] ?? String(error.code),
  error.state,
  error.holder,
]
const codeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'done',
    (error) => codeOfSqlstate(error.code) ?? error.code,
  )

export function typescript(rowlock: Rowlock): Door {
  const one = (verb: BulkVerb, id: string): Promise<unknown> => {
    if (verb === 'prioritize') return rowlock.prioritize(id, PRIORITY, BY)
    return verb === 'run_now' ? rowlock.runNow(id, BY) : rowlock[verb](id, BY)
  }
  const several = (verb: BulkVerb, ids: readonly string[]) => {
    if (verb === 'prioritize') return rowlock.prioritizeMany(ids, PRIORITY, BY)
    return verb === 'run_now' ? rowlock.runNowMany(ids, BY) : rowlock[`${verb}Many`](ids, BY)
  }
  return {
    one: (verb, id) =>
      one(verb, id).then((answer): Said => {
        if (typeof answer === 'string') return [answer]
        return [DONE[verb], undefined, undefined, (answer as { id?: string } | undefined)?.id]
      }, refused),
    several: async (verb, ids) => (await several(verb, ids)).map(said),
    async filtered(verb, queue) {
      const options = { ...BY, ...(verb === 'prioritize' && { priority: PRIORITY }) }
      const bulk = await rowlock.bulk(verb, { queue }, options)
      const answers: Said[] = []
      await bulk.run({ onStep: (_, step) => answers.push(...step.map(said)) })
      return answers
    },
    pause: (queue) => rowlock.pause(queue, BY),
    resume: (queue) => rowlock.resume(queue, BY),
    set: (queue, settings) => codeOf(rowlock.setQueue(queue, settings as QueueSettings, BY)),
    wrong: (id) => Promise.all([codeOf(rowlock.prioritize(id, 11)), codeOf(rowlock.cancel('x'))]),
  }
}

/** A call that was wrong ends with 2, as INVALID_OPTION is thrown. */
const EXITS: Readonly<Record<number, string>> = { 0: 'done', 2: 'INVALID_OPTION' }

export function commandLine(url: string): Door {
  const run = (...args: string[]) =>
    call([...args, '--actor', BY.actor, '--reason', BY.reason, '--json'], { url })
  const words = (verb: BulkVerb) =>
    verb === 'prioritize' ? ['prioritize', String(PRIORITY)] : [verb.replace('_', '-')]
  const change = async (...args: string[]): Promise<readonly Said[]> => {
    const { code, stdout, stderr } = await run(...args, '--yes')
    const answers = linesOf(stdout).map(said)
    const isRefused = answers.some(([answer]) =>
      [...Object.values(REFUSED), 'already_ended'].includes(answer),
    )
    const expected = answers.length === 1 && answers[0]![0] === 'not_found' ? 3 : isRefused ? 4 : 0
    if (code !== expected) throw new Error(`exit code ${code} instead of ${expected}: ${stderr}`)
    return answers
  }
  const settings = ({ retentionDays, targetWait, concurrency, maxRunning, rate }: Settings) => [
    ...(retentionDays === undefined ? [] : ['--retention-days', String(retentionDays)]),
    ...(targetWait === undefined ? [] : ['--target-wait', targetWait]),
    ...(concurrency === undefined ? [] : ['--concurrency', String(concurrency ?? 'none')]),
    ...(maxRunning === undefined ? [] : ['--max-running', String(maxRunning)]),
    ...(rate === undefined ? [] : ['--rate', `${rate.starts}/${rate.per}`, '--burst', String(rate.burst)]),
  ]
  return {
    one: async (verb, id) => (await change(...words(verb), id))[0]!,
    several: (verb, ids) => change(...words(verb), ...ids),
    filtered: (verb, queues) => change(...words(verb), ...queues.flatMap((queue) => ['--queue', queue])),
    pause: async (queue) => linesOf((await run('pause', queue)).stdout)[0].changed,
    resume: async (queue) => linesOf((await run('resume', queue)).stdout)[0].changed,
    set: async (queue, wanted) => EXITS[(await run('queue', queue, ...settings(wanted))).code]!,
    wrong: async (id) => [
      EXITS[(await run('prioritize', '11', id)).code]!,
      EXITS[(await run('cancel', 'x')).code]!,
    ],
  }
}

export function plainSql(db: TestRowlock): Door {
  const args = (verb: BulkVerb) => (verb === 'prioritize' ? `$1, ${PRIORITY}, $2, $3` : '$1, $2, $3')
  const wire = ({ answer, detail }: { answer: string; detail: Record<string, string> | null }): Said => [
    answer,
    detail?.state,
    detail?.holder,
    detail?.new_job_id === undefined ? undefined : String(detail.new_job_id),
  ]
  const onQueue = (verb: string, queue: string) =>
    db.value<boolean>(`select rowlock.${verb}($1, $2, $3)`, [queue, BY.actor, BY.reason])
  return {
    one: (verb, id) =>
      db.value(`select rowlock.${verb}(${args(verb)})`, [id, BY.actor, BY.reason]).then(
        (answer: string): Said =>
          verb === 'cancel'
            ? [answer]
            : [DONE[verb], undefined, undefined, verb === 'retry' ? answer : undefined],
        (error): Said =>
          refused({ ...JSON.parse(error.detail ?? '{}'), code: codeOfSqlstate(error.code) ?? error.code }),
      ),
    several: async (verb, ids) =>
      (await db.sql(`select * from rowlock.${verb}_many(${args(verb)})`, [ids, BY.actor, BY.reason])).map(
        wire,
      ),
    async filtered(verb, queue) {
      const more = verb === 'prioritize' ? { priority: PRIORITY } : {}
      const values = [verb, { queue }, more, BY.actor, BY.reason]
      const bulk = await db.value('select rowlock.begin_bulk($1, $2, $3, $4, $5)', values)
      const answers: Said[] = []
      for (let row = bulk; row.outcome === null; ) {
        row = await db.value('select rowlock.run_bulk($1)', [bulk.id])
        answers.push(
          ...row.answers.map(([, answer, detail]: [string, string, never]) => wire({ answer, detail })),
        )
      }
      return answers
    },
    pause: (queue) => onQueue('pause', queue),
    resume: (queue) => onQueue('resume', queue),
    set(queue, { retentionDays, targetWait, concurrency, maxRunning, rate }) {
      const settings = {
        retention_days: retentionDays,
        target_wait: targetWait,
        concurrency,
        max_running: maxRunning,
        rate,
      }
      return codeOf(
        db.sql('select rowlock.set_queue($1, $2, $3, $4)', [queue, settings, BY.actor, BY.reason]),
      )
    },
    wrong: async (id) => {
      const codes = await Promise.all([
        codeOf(db.sql('select rowlock.prioritize($1, 11)', [id])),
        codeOf(db.sql(`select rowlock.cancel('x')`)),
      ])
      // SQL has a type for ids, and PostgreSQL refuses what is none.
      return codes.map((code) => (code === '22P02' ? 'INVALID_OPTION' : code))
    },
  }
}
