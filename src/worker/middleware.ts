// What can be wrapped around every handler of a worker.

import type { HandlerContext } from './handler.ts'

/** Wraps the run of each job. What `next` answers or throws is the handler's; so is what this answers or throws. */
export type HandlerMiddleware = (context: HandlerContext, next: () => Promise<unknown>) => Promise<unknown>

/** Call a handler through its middleware, the first of which is the outermost. */
export function through(
  middleware: readonly HandlerMiddleware[],
  context: HandlerContext,
  run: (context: HandlerContext) => unknown,
): unknown {
  if (middleware.length === 0) return run(context)
  const step = async (n: number): Promise<unknown> => {
    const next = middleware[n]
    return next === undefined ? run(context) : next(context, () => step(n + 1))
  }
  return step(0)
}
