// Runs transactions of several sessions statement by statement, in an order that somebody else chose. A statement that
// would wait for a lock is refused after 50 ms; its actor rolls back and begins again when the others are through.

/** Whatever can run a statement. */
export interface Session {
  query(
    text: string | { name: string; text: string },
    values?: unknown[],
  ): Promise<{ rows: { [column: string]: unknown }[] }>
}

/** What an actor does in its transaction; the answer is what its statement said. */
export interface Act {
  readonly name: string
  /** Statements of one transaction, between begin and its end. */
  readonly statements: readonly ((session: Session) => Promise<unknown>)[]
  readonly end: 'commit' | 'rollback'
}

/** How a transaction ended. */
export interface Outcome {
  readonly name: string
  /** What its statements answered, when it committed. */
  readonly answers: readonly unknown[] | null
  /** The SQLSTATE it was refused with, when it was. */
  readonly refused: string | null
  /** How often it had to begin again. */
  readonly waits: number
}

const TRIES = 8
/** It would wait for a lock: try again. */
const WOULD_WAIT = '55P03'

/** Say once per session: do not wait. */
export async function waitForNobody(session: Session): Promise<void> {
  await session.query(`set lock_timeout = '50ms'`)
}

/** Let each actor take its steps in this order; whoever is not through after it goes on alone, in turn. */
export async function interleave(
  acts: readonly Act[],
  sessions: readonly Session[],
  order: readonly number[],
): Promise<Outcome[]> {
  const runs = acts.map((act, n) => new Run(act, sessions[n]!))
  for (const n of order) if (!runs[n]!.isBlocked) await runs[n]!.step()
  for (const run of runs) while (!run.isBlocked && !run.isOver) await run.step()
  // Those that were refused a lock: the others are through now, or wait for each other no longer.
  for (let tries = 0; tries < TRIES && runs.some(({ isOver }) => !isOver); tries++) {
    for (const run of runs) {
      run.isBlocked = false
      while (!run.isBlocked && !run.isOver) await run.step()
    }
  }
  const stuck = runs.filter(({ isOver }) => !isOver)
  if (stuck.length > 0) throw new Error(`${stuck.map(({ act }) => act.name)} never got through`)
  return runs.map(({ outcome }) => outcome)
}

class Run {
  readonly act: Act
  isBlocked = false
  isOver = false
  readonly #session: Session
  #at = 0
  #answers: unknown[] = []
  #refused: string | null = null
  #waits = 0

  constructor(act: Act, session: Session) {
    this.act = act
    this.#session = session
  }

  get outcome(): Outcome {
    const isDone = this.#refused === null && this.act.end === 'commit'
    return {
      name: this.act.name,
      answers: isDone ? this.#answers : null,
      refused: this.#refused,
      waits: this.#waits,
    }
  }

  async step(): Promise<void> {
    if (this.isOver) return
    const { statements, end } = this.act
    try {
      if (this.#at === 0) await this.#session.query('begin')
      else if (this.#at <= statements.length) {
        this.#answers.push(await statements[this.#at - 1]!(this.#session))
      } else {
        await this.#session.query(end)
        this.isOver = true
      }
      this.#at++
    } catch (error) {
      await this.#session.query('rollback')
      const { code } = error as { code?: string }
      if (code === WOULD_WAIT) {
        this.isBlocked = true
        this.#waits++
        this.#at = 0
        this.#answers = []
      } else if (/^RL\d\d\d$/.test(code ?? '')) {
        this.#refused = code!
        this.isOver = true
      } else {
        throw error
      }
    }
  }
}
