// One job on a page: what it is, what happened to it, what went in and what came out.

import type { JobRow, StoryLine } from '../index.ts'
import { ago, instant, span } from './amounts.ts'
import { STATE_STYLES } from './paint.ts'
import type { Shell } from './shell.ts'
import { storyLines } from './story.ts'
import { fields } from './table.ts'
import { cut, visible, visibleLines } from './visible.ts'

/** Lines of an input, a result or an error; all of it is in `--json`. */
const MOST_LINES = 30

export function jobPage(shell: Shell, job: JobRow, story: readonly StoryLine[], now: Date): string[] {
  const { paint } = shell
  const title = `${paint('bold', `job ${job.id}`)}  ${paint(STATE_STYLES[job.state] ?? 'bold', job.state)}  `
  const at = (date: Date | null) => (date === null ? undefined : `${instant(date)} (${ago(date, now)})`)
  const isWaiting = job.state === 'queued' || job.state === 'retryable'
  const pairs: readonly (readonly [string, string | null | undefined])[] = [
    ['queue', job.queue],
    ['priority', job.priority === 0 ? undefined : String(job.priority)],
    ['cause', job.cause],
    ['reason', job.reason],
    ['by', job.actor],
    ['attempts', `${job.attempt}, ${job.failures} of ${job.maxAttempts} failures used`],
    ['timeout', span(job.timeoutMs)],
    ['enqueued', at(job.enqueuedAt)],
    [isWaiting ? 'due' : 'was due', at(job.availableAt)],
    ['started', at(job.startedAt)],
    [job.state === 'dead_letter' ? 'dead since' : 'ended', at(job.finishedAt)],
    ['expires', at(job.expiresAt)],
    ['worker', job.workerId],
    ['tenant', job.tenantId],
    ['dedupe key', job.dedupeKey],
    ['idempotency key', job.idempotencyKey],
    ['retried from', job.retriedFrom],
  ]
  const shown = pairs.map(([name, value]) => [name, value == null ? undefined : visible(value)] as const)
  return [
    title + visible(job.kind),
    '',
    ...fields(shown, paint),
    '',
    ...storyLines(story, shell),
    ...part(shell, 'metadata', job.metadata),
    ...part(shell, 'input', job.input),
    ...part(shell, 'result', job.result),
    ...errorPart(shell, job),
  ]
}

function part(shell: Shell, name: string, value: unknown): string[] {
  if (value === null || value === undefined) return []
  if (name === 'metadata' && Object.keys(value).length === 0) return []
  return block(shell, name, JSON.stringify(value, null, 2))
}

/** What went wrong last: of a dead letter, else of its last attempt that failed. */
function errorPart(shell: Shell, job: JobRow): string[] {
  const error = job.error ?? (job.state === 'done' ? undefined : job.attempts.at(-1)?.error)
  if (error === null || error === undefined) return []
  const { name, message, stack } = error as { name?: unknown; message?: unknown; stack?: unknown }
  if (typeof message !== 'string') return block(shell, 'last error', JSON.stringify(error, null, 2))
  const head = typeof name === 'string' ? `${name}: ${message}` : message
  const frames =
    typeof stack === 'string' && stack !== '' ? stack.split('\n').map((frame) => `\n  ${frame.trim()}`) : []
  return block(shell, 'last error', head + frames.join(''))
}

function block(shell: Shell, name: string, text: string): string[] {
  const lines = visibleLines(text)
  const more = lines.length - MOST_LINES
  return [
    '',
    shell.paint('bold', name),
    ...lines.slice(0, MOST_LINES).map((line) => `  ${cut(line, shell.width - 2)}`),
    ...(more > 0 ? [shell.paint('gray', `  … ${more} more lines: --json has them`)] : []),
  ]
}
