// A bulk change on the command line: run in steps with progress, until it is done, stopped or interrupted. What was
// done is always said, and how to go on.

import { isRowlockError } from '../ground/errors.ts'
import type { Answer, Bulk, BulkRow } from '../index.ts'
import { count, jobs } from './amounts.ts'
import { answerLine, isRefusal } from './answers.ts'
import type { Exit } from './exit.ts'
import { type Goal, Progress } from './progress.ts'
import { commandLine, type Shell } from './shell.ts'

/** Run it to its end. Errors: whatever a step threw, after it was said how far the change got. */
export async function runBulk(shell: Shell, bulk: Bulk): Promise<Exit> {
  const seen = (row: BulkRow) => row.changed + refusedOf(row)
  const progress = new Progress(shell, goalOf(bulk.row), seen(bulk.row))
  let last = bulk.row
  const refused: Answer[] = []
  const onStep = (row: BulkRow, answers: readonly Answer[]) => {
    last = row
    if (shell.isJson) void shell.ndjson(answers)
    refused.push(...answers.filter(({ answer }) => isRefusal(answer)).slice(0, MOST_REFUSED - refused.length))
    progress.update(seen(row))
  }
  return shell.interruptible(async (signal) => {
    let row: BulkRow
    try {
      row = await bulk.run({ signal, onStep })
    } catch (error) {
      progress.end()
      if (isRowlockError(error, 'OUTCOME_UNKNOWN')) {
        shell.say(`${shell.talkPaint('red', 'rowlock:')} the connection was lost in the middle of a step`)
        shell.say(`${outcome(last)} at least. No job is changed twice by going on.\n${goOn(bulk.id)}`)
        return 'unreachable'
      }
      shell.say(`${outcome(last)} so far, when this happened.\n${goOn(bulk.id)}`)
      throw error
    }
    progress.end()
    shell.say(sentence(row))
    if (!shell.isJson) for (const line of refusals(shell, refused, refusedOf(row))) shell.say(line)
    if (row.outcome === null) {
      shell.say(goOn(bulk.id))
      return 'interrupted'
    }
    return row.outcome === 'done' && refusedOf(row) === 0 ? 'done' : 'partly'
  })
}

/** None is no goal where they were not counted to the end. */
const goalOf = ({ matched, about }: BulkRow): Goal =>
  about && matched === 0 ? {} : { total: matched, about }

const goOn = (id: string) =>
  `To go on: ${commandLine('bulk', 'resume', id)}. To leave it at that: ${commandLine('bulk', 'stop', id)}`

/** Jobs that were left as they are; a call that goes on knows of its own steps only. */
const MOST_REFUSED = 20

function refusals(shell: Shell, answers: readonly Answer[], all: number): string[] {
  const lines = answers.map(
    (answer) => `  ${answerLine(answer, shell.talkPaint)}: ${commandLine('why', answer.id)}`,
  )
  const more = all - answers.length
  return more > 0 && answers.length > 0 ? [...lines, `  … and ${jobs(more)} more`] : lines
}

function sentence(row: BulkRow): string {
  if (row.outcome === 'done') return `${outcome(row)} (bulk change ${row.id}).`
  const how = row.outcome === 'stopped' ? 'stopped' : 'interrupted'
  return `${how} after ${outcome(row)}, of ${jobs(row.matched, row.about)} (bulk change ${row.id}).`
}

/** `12,000 changed; 3 not changed: 2 busy, 1 changed`. */
export function outcome(row: BulkRow): string {
  const refused = Object.entries(row.refused)
  const changed = `${count(row.changed)} changed`
  if (refused.length === 0) return changed
  const list = refused.map(([word, n]) => `${count(n)} ${word}`).join(', ')
  return `${changed}; ${count(refusedOf(row))} not changed: ${list}`
}

const refusedOf = (row: BulkRow): number =>
  Object.values(row.refused).reduce((all: number, n: number) => all + n, 0)
