// How an embedded server says that it cannot be had: one code, and a message that says what to do next.

import { readFileSync } from 'node:fs'
import { RowlockError } from '../ground/errors.ts'

/** The error of everything that keeps an embedded server from running. */
export function unavailable(message: string, cause?: unknown): RowlockError {
  const detail = cause === undefined ? {} : { cause }
  return new RowlockError('EMBEDDED_UNAVAILABLE', `Embedded PostgreSQL: ${message}`, detail)
}

/** The last lines of a text: what a person needs to see of a program that failed. */
export function lastLines(text: string, lines = 12): string {
  return text.trimEnd().split('\n').slice(-lines).join('\n')
}

/** What a log file has gained since it was `offset` bytes long. */
export function textSince(file: string, offset: number): string {
  try {
    return readFileSync(file).subarray(offset).toString('utf8')
  } catch {
    return ''
  }
}

/** The code of a failed system call, as `ENOENT`. */
export function codeOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | undefined)?.code
  return typeof code === 'string' ? code : undefined
}

/** The error for an option that cannot be used. */
export function invalid(path: string, message: string): RowlockError {
  return new RowlockError('INVALID_OPTION', `startEmbedded: ${path}: ${message}`, { path })
}
