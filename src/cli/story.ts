// The story of a job as a timeline: when, how long after the line before, what happened, by whom and why.

import type { StoryLine } from '../index.ts'
import { instant, span } from './amounts.ts'
import type { Style } from './paint.ts'
import { type Column, type Frame, table } from './table.ts'

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

export function storyLines(story: readonly StoryLine[], frame: Frame): string[] {
  const rows = story.map((line, n) => ({ line, before: story[n - 1] }))
  const columns: readonly Column<(typeof rows)[number]>[] = [
    { head: 'AT', of: ({ line }) => instant(line.at) },
    { head: 'AFTER', of: ({ line, before }) => after(line, before), isNumber: true, weight: 1 },
    {
      head: 'TRY',
      of: ({ line }) => (line.attempt === null ? '' : String(line.attempt)),
      isNumber: true,
      isOptional: true,
    },
    { head: 'EVENT', of: ({ line }) => line.event, style: ({ line }) => STYLES[line.event] },
    { head: '', of: ({ line }) => saidOf(line), min: 16 },
  ]
  return table(rows, columns, frame)
}

function after(line: StoryLine, before: StoryLine | undefined): string {
  if (before === undefined) return ''
  const ms = line.at.getTime() - before.at.getTime()
  return ms <= 0 ? '' : `+${span(ms)}`
}

/** Cause, actor, reason and detail as a sentence; the error in its own words. */
function saidOf({ cause, actor, reason, worker, detail }: StoryLine): string {
  return [
    ...(cause === null ? [] : [cause]),
    ...(actor === null ? [] : [`by ${actor}`]),
    ...(reason === null ? [] : [`“${reason}”`]),
    ...(worker === null ? [] : [`on ${shortWorker(worker)}`]),
    ...details(detail),
  ].join(', ')
}

const shortWorker = (worker: string): string =>
  /^[0-9a-f]{8}-[0-9a-f-]{27}$/.test(worker) ? worker.slice(0, 8) : worker

function details(detail: unknown): string[] {
  if (typeof detail !== 'object' || detail === null) return []
  return Object.entries(detail).flatMap(([name, value]) => {
    if (value === null || value === undefined || name === 'result' || name === 'input') return []
    if (name === 'error') return [errorLine(value)]
    return [`${name.replaceAll('_', ' ')} ${typeof value === 'string' ? value : JSON.stringify(value)}`]
  })
}

/** The name and the first line of the message of an error as it is stored. */
export function errorLine(error: unknown): string {
  const { name, message } = (error ?? {}) as { name?: unknown; message?: unknown }
  if (typeof message !== 'string') return error === null || error === undefined ? '' : JSON.stringify(error)
  const [line = ''] = message.split('\n', 1)
  return typeof name === 'string' ? `${name}: ${line}` : line
}
