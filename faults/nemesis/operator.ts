// People at work: they cancel, redrive, retry, discard, prioritize and pause at random, through the verbs.

import { isRowlockError, type RowlockErrorCode } from '../../src/index.ts'
import type { Context, Nemesis } from '../context.ts'
import type { Dice } from '../random.ts'

/** What an operator may be told; anything else is a fault of ours. */
const USUAL: readonly RowlockErrorCode[] = [
  'JOB_NOT_FOUND',
  'JOB_BUSY',
  'WRONG_STATE',
  'DEDUPE_KEY_TAKEN',
  'OUTCOME_UNKNOWN',
  'DATABASE_UNAVAILABLE',
]

async function act({ rowlock, operations, sql, recent }: Context, dice: Dice): Promise<string> {
  const verb = dice.pick([
    'cancel',
    'cancel',
    'run_now',
    'prioritize',
    'redrive',
    'discard',
    'retry',
  ] as const)!
  const isAboutLetters = verb === 'redrive' || verb === 'discard'
  const letters = isAboutLetters
    ? await sql<{ id: string }>('select id::text as id from rowlock.dead_letter order by id desc limit 20')
    : []
  // A recent one is more likely to be alive.
  const id = isAboutLetters ? dice.pick(letters)?.id : recent[recent.length - 1 - dice.whole(recent.length)]
  if (id === undefined) return `${verb}: no job`
  const by = { actor: 'operator', reason: 'at random' }
  const ask = {
    cancel: () => rowlock.cancel(id, by),
    run_now: () => rowlock.runNow(id, by),
    prioritize: () => rowlock.prioritize(id, dice.whole(21) - 10, by),
    redrive: () => rowlock.redrive(id, by),
    discard: () => rowlock.discard(id, by),
    retry: () => rowlock.retry(id, by),
  }[verb]
  try {
    const answer = String((await ask()) ?? 'done')
    operations.push({ verb, id, answer })
    return `${verb} ${id}: ${answer}`
  } catch (error) {
    if (!isRowlockError(error) || !USUAL.includes(error.code)) {
      // What refuses on purpose says so; whatever else a verb throws is noted.
      if (!/refused on purpose|terminat|timeout/.test(String((error as Error).message))) throw error
    }
    const code = isRowlockError(error) ? error.code : 'refused'
    operations.push({ verb, id, answer: code })
    return `${verb} ${id}: ${code}`
  }
}

const change: Nemesis = {
  name: 'operator',
  weight: 3,
  inflict: act,
}

/** What is known of a queue: how many of these acts began on it, and how many resumes may still arrive. */
const known = new Map<string, { acts: number; resumes: number }>()

const pause: Nemesis = {
  name: 'pause',
  weight: 0.5,
  async inflict({ rowlock, pause, pauses }, dice) {
    const queue = dice.pick(['default', 'narrow'])!
    const ms = Math.round(dice.between(200, 2_000))
    const facts = known.get(queue) ?? { acts: 0, resumes: 0 }
    known.set(queue, facts)
    const act = ++facts.acts
    const isPaused = await rowlock.pause(queue, { actor: 'operator' }).then(
      () => true,
      () => false,
    )
    const from = Date.now() + 1
    const isAlone = facts.resumes === 0
    await pause(ms)
    // Only when nobody else resumed it, or was about to, it was paused all the time.
    if (isPaused && isAlone && facts.acts === act) pauses.push({ queue, from, to: Date.now() - 1 })
    facts.acts++
    facts.resumes++
    // One whose answer was lost may arrive whenever it likes.
    await rowlock.resume(queue, { actor: 'operator' }).then(
      () => facts.resumes--,
      () => {},
    )
    return `${queue} for ${ms} ms`
  },
  async heal({ rowlock }) {
    for (const queue of ['default', 'narrow']) await rowlock.resume(queue)
    known.clear()
  },
}

export const operator: readonly Nemesis[] = [change, pause]
