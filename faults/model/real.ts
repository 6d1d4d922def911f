// The database beside the model: one session, a clock that only the test moves, and one comparison after each step.

import { deepStrictEqual } from 'node:assert'
import { PICTURE, pictureOf } from './picture.ts'
import type { ModelDatabase } from './queue.ts'

/** Whatever can run a statement. */
export interface Session {
  query(
    text: string | { name: string; text: string },
    values?: unknown[],
  ): Promise<{ rows: { [column: string]: unknown }[] }>
}

const TABLES = [
  'waiting',
  'running',
  'finished',
  'dead_letter',
  'attempt',
  'payload',
  'dedupe',
  'cancel_request',
  'queue',
  'worker',
  'sleeper',
  'audit',
]

const byText = (a: unknown, b: unknown) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)

/** What a verb for many answers of one. */
export interface ManyRow {
  readonly id: string
  readonly answer: string
  readonly detail: Readonly<Record<string, unknown>> | null
}

/** The queue under test. */
export class RealDatabase {
  readonly #session: Session

  constructor(session: Session) {
    this.#session = session
  }

  /** Once per database: let a row say what time it is. */
  async takeClock(): Promise<void> {
    await this.#session.query(`
      create table if not exists public.clock (at timestamptz not null);
      create or replace function rowlock.now() returns timestamptz
      language sql volatile parallel safe as $now$ select c.at from public.clock c $now$`)
  }

  /** Empty, at this instant. Rows are few: deleting them is far quicker than truncating all the days. */
  async begin(now: number): Promise<void> {
    await this.#session.query(TABLES.map((table) => `delete from rowlock.${table}`).join(';'))
    await this.#session.query('delete from public.clock')
    await this.#session.query(`insert into public.clock values ($1)`, [new Date(now)])
  }

  async setClock(now: number): Promise<void> {
    await this.#session.query('update public.clock set at = $1', [new Date(now)])
  }

  /** Which of these wait no longer. */
  async notWaiting(ids: readonly string[]): Promise<string[]> {
    if (ids.length === 0) return []
    const text = 'select id::text from rowlock.waiting where id = any ($1)'
    const { rows } = await this.#session.query(text, [ids])
    const waiting = new Set(rows.map(({ id }) => id))
    return [...new Set(ids)].filter((id) => !waiting.has(id))
  }

  async endLease(workerId: string): Promise<void> {
    const text = `update rowlock.worker w set expires_at = least(w.expires_at, rowlock.now()) where w.id = $1`
    await this.#session.query(text, [workerId])
  }

  /** Call a verb; JSON in, JSON out. */
  async call<T = unknown>(verb: string, ...values: unknown[]): Promise<T> {
    const places = values.map((_, i) => `$${i + 1}`).join(', ')
    const sent = values.map((value) =>
      typeof value === 'object' && value !== null ? JSON.stringify(value) : value,
    )
    const text = `select to_json(rowlock.${verb}(${places})) as reply`
    return (await this.#session.query(text, sent)).rows[0]!.reply as T
  }

  /** A verb for many jobs: a row for each, in order. */
  async many(verb: string, ids: readonly string[], more: readonly unknown[]): Promise<ManyRow[]> {
    const places = more.map((_, n) => `, $${n + 2}`).join('')
    const text = `select m.id::text, m.answer, m.detail from rowlock.${verb}_many($1::bigint[]${places}) as m`
    return (await this.#session.query(text, [ids, ...more])).rows as unknown as ManyRow[]
  }

  /** The SQLSTATE a call is refused with, or its value. */
  async answer(verb: string, ...values: unknown[]): Promise<{ value: unknown } | { refused: string }> {
    try {
      const value = await this.call(verb, ...values)
      return { value: value === '' ? null : value }
    } catch (error) {
      const { code } = error as { code?: string }
      if (!/^RL\d\d\d$/.test(code ?? '')) throw error
      return { refused: code! }
    }
  }

  /** Run statements in one transaction; answers the SQLSTATE of a refusal, or null. */
  async transaction(verbs: readonly [verb: string, ...values: unknown[]][], end: 'commit' | 'rollback') {
    await this.#session.query('begin')
    try {
      for (const [verb, ...values] of verbs) await this.call(verb, ...values)
      await this.#session.query(end)
      return null
    } catch (error) {
      await this.#session.query('rollback')
      return (error as { code?: string }).code ?? String(error)
    }
  }

  /** Throws when anything that can be seen differs from the model. */
  async compare(model: ModelDatabase): Promise<void> {
    const fault = model.fault()
    if (fault !== undefined) throw new Error(`the model contradicts itself: ${fault}`)
    const { rows } = await this.#session.query({ name: 'picture', text: PICTURE })
    const seen = rows[0]!.picture as Record<string, unknown[]>
    const expected = JSON.parse(JSON.stringify(pictureOf(model))) as Record<string, unknown[]>
    // Which of several jobs a verb wrote down first says nothing.
    for (const { audit } of [seen, expected]) audit!.sort(byText)
    deepStrictEqual(seen, expected)
  }
}
