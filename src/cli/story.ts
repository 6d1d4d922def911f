// The story of a job as a timeline: when, how long after the line before, what happened, by whom and why.

import type { StoryLine } from '../index.ts'
import { instant, span } from './amounts.ts'
import type { Style } from './paint.ts'
import type { Frame } from './table.ts'
import { visible, wrap } from './visible.ts'

const STYLES: Readonly<Record<string, Style>> = {
  enqueued: 'cyan',
  started: 'blue',
  done: 'green',
  failed: 'red',
  timed_out: 'red',
  lost: 'red',
  dead_letter: ['bold', 'red'],
  cancelled: 'gray',
}
const INDENT = '  '

/** A line for each thing that happened, below the day it happened on (in UTC); what is said of it wraps. */
export function storyLines(story: readonly StoryLine[], { width, paint }: Frame): string[] {
  const rows = story.map((line, n) => {
    const [day = '', time = ''] = instant(line.at).replace('Z', '').split(' ')
    return { line, day, time, after: after(line, story[n - 1]), said: visible(saidOf(line)) }
  })
  const widest = (texts: readonly string[]) => Math.max(0, ...texts.map((text) => text.length))
  const afters = widest(rows.map((row) => row.after))
  const tries = widest(rows.map(({ line }) => tryOf(line)))
  const events = widest(rows.map(({ line }) => line.event))
  return rows.flatMap(({ line, day, time, after, said }, n) => {
    const before = `${INDENT}${time}  ${after.padStart(afters)}  ${tryOf(line).padEnd(tries)}  `
    const event = paint(STYLES[line.event] ?? 'bold', line.event) + ' '.repeat(events - line.event.length)
    const left = before.length + events + 2
    const [first = '', ...rest] = wrap(said, Math.max(20, width - left))
    return [
      ...(day === rows[n - 1]?.day ? [] : [paint('gray', `${day} UTC`)]),
      `${before}${event}  ${first}`.trimEnd(),
      ...rest.map((text) => ' '.repeat(left) + text),
    ]
  })
}

const tryOf = ({ attempt }: StoryLine): string => (attempt === null ? '' : `try ${attempt}`)

function after(line: StoryLine, before: StoryLine | undefined): string {
  if (before === undefined) return ''
  const ms = line.at.getTime() - before.at.getTime()
  return ms <= 0 ? '' : `+${span(ms)}`
}

/** What went wrong first, in its own words; then who and why. */
function saidOf({ event, cause, actor, reason, worker, detail }: StoryLine): string {
  const { error, ...rest } = detail ?? {}
  const message = errorLine(error)
  return [
    ...(message === '' ? [] : [message]),
    ...(cause === null || message.startsWith(`${cause}:`) ? [] : [cause]),
    ...(actor === null ? [] : [`by ${actor}`]),
    ...(reason === null ? [] : [`“${reason}”`]),
    ...details(event, rest),
    ...(worker === null ? [] : [`on ${worker}`]),
  ]
    .map((part) => part.replace(/[\s,;:]+$/, ''))
    .filter((part) => part !== '')
    .join(', ')
}

/** The page above says the queue and the kind; below it stand input and result. */
function details(event: string, detail: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(detail).flatMap(([name, value]) => {
    if (value === null || name === 'result' || name === 'input') return []
    if (event === 'enqueued' && ['queue', 'kind', 'priority'].includes(name)) return []
    return [`${name.replaceAll('_', ' ')} ${typeof value === 'string' ? value : JSON.stringify(value)}`]
  })
}

/** The name and the first line of the message of an error as it is stored. */
function errorLine(error: unknown): string {
  if (error === null || error === undefined) return ''
  const { name, message } = error as { name?: unknown; message?: unknown }
  if (typeof message !== 'string') return JSON.stringify(error)
  const [line = ''] = message.split('\n', 1)
  return typeof name === 'string' ? `${name}: ${line}` : line
}
