// People who change many jobs at once: lists of ids in any order, and whatever a filter finds, step by step.

import { isRowlockError } from '../../src/index.ts'
import type { Context, Nemesis } from '../context.ts'
import type { Operation } from '../history.ts'
import type { Dice } from '../random.ts'

const BY = { actor: 'operator', reason: 'many at once' }

/** A verb may be refused on purpose, or lose its link; whatever else it throws is a fault of ours. */
function excuse(error: unknown): string {
  const passing = /refused on purpose|terminat|timeout|Connection|lost before/
  if (isRowlockError(error, 'OUTCOME_UNKNOWN') || isRowlockError(error, 'DATABASE_UNAVAILABLE'))
    return error.code
  if (passing.test(String((error as Error).message))) return 'refused'
  throw error
}

async function some({ rowlock, recent, operations }: Context, dice: Dice): Promise<string> {
  const verb = dice.pick(['cancel', 'run_now', 'prioritize', 'retry'] as const)!
  const ids = new Set(
    Array.from({ length: Math.min(recent.length, 1 + dice.whole(30)) }, () => dice.pick(recent)!),
  )
  const list = [...ids]
  const ask = {
    cancel: () => rowlock.cancelMany(list, BY),
    run_now: () => rowlock.runNowMany(list, BY),
    prioritize: () => rowlock.prioritizeMany(list, dice.whole(21) - 10, BY),
    retry: () => rowlock.retryMany(list, BY),
  }[verb]
  try {
    const answers = await ask()
    for (const { id, answer } of answers) operations.push({ verb, id, answer })
    return `${verb} of ${list.length}`
  } catch (error) {
    return `${verb} of ${list.length}: ${excuse(error)}`
  }
}

async function filtered({ rowlock, operations, sql }: Context, dice: Dice): Promise<string> {
  const verb = dice.pick(['cancel', 'run_now', 'prioritize', 'redrive', 'discard'] as const)!
  const kind = dice.pick(['quick', 'flaky', 'later', 'book'])!
  if (verb === 'redrive') {
    // An answer that is lost leaves open which of them it was.
    const letters = await sql<{ id: string }>(
      'select id::text as id from rowlock.dead_letter where kind = $1',
      [kind],
    )
    operations.push(...letters.map(({ id }): Operation => ({ verb, id, answer: 'asked' })))
  }
  try {
    // One that a fault has cut off has not ended; this person begins another beside it.
    const asked = { ...BY, anew: true, ...(verb === 'prioritize' && { priority: 1 }) }
    const bulk = await rowlock.bulk(verb, { kind }, asked)
    const { changed } = await bulk.run({
      limit: 20,
      onStep: (_, answers) => {
        for (const { id, answer } of answers) operations.push({ verb, id, answer })
      },
    })
    return `${verb} of all ${kind}: ${changed} changed`
  } catch (error) {
    return `${verb} of all ${kind}: ${excuse(error)}`
  }
}

const many: Nemesis = { name: 'many', inflict: some }
const bulk: Nemesis = { name: 'bulk', inflict: filtered }

export const bulks: readonly Nemesis[] = [many, bulk]
