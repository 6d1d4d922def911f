// What a job needs of the database before its handler is called: asked again until it is answered.

import { isPassing } from '../engine/translate.ts'
import type { Run } from './run.ts'

const PAUSE_MIN_MS = 50
const PAUSE_MAX_MS = 2_000

/**
 * Ask until there is an answer or a refusal. A database that is away for a moment is no failure of a job that has not
 * begun; how long it may be away, the lease and the timeout say. At an abort the wait ends: what an answer that comes
 * later has brought is given to `discard`.
 */
export async function persist<T>(
  run: Run,
  ask: () => Promise<T>,
  discard?: (late: T) => Promise<void>,
): Promise<T> {
  for (let tries = 0; ; tries++) {
    if (run.abortReason !== undefined) throw run.abortReason
    try {
      return await untilAborted(run, ask(), discard)
    } catch (error) {
      if (run.abortReason !== undefined || !isPassing(error)) throw run.abortReason ?? error
      await pause(run, Math.min(PAUSE_MAX_MS, PAUSE_MIN_MS * 2 ** Math.min(tries, 10)))
    }
  }
}

function untilAborted<T>(run: Run, asked: Promise<T>, discard?: (late: T) => Promise<void>): Promise<T> {
  return new Promise((resolve, reject) => {
    let isLate = false
    const leave = () => {
      isLate = true
      reject(run.abortReason)
    }
    run.signal.addEventListener('abort', leave)
    const stay = () => run.signal.removeEventListener('abort', leave)
    asked.then(
      (answer) => {
        stay()
        if (isLate) discard?.(answer).catch(() => {})
        else resolve(answer)
      },
      (error) => {
        stay()
        reject(error)
      },
    )
  })
}

/** Ends early at an abort. */
function pause(run: Run, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer)
      run.signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    if (run.signal.aborted) done()
    else run.signal.addEventListener('abort', done)
  })
}
