// The records: the 329 real payloads of GitHub's webhooks that `@octokit/webhooks-examples` ships.

import { createRequire } from 'node:module'

/** One payload, and the event it is of. */
export interface Event {
  readonly event: string
  readonly payload: Record<string, unknown>
}

export function readEvents(): Event[] {
  const require = createRequire(import.meta.url)
  const definitions = require('@octokit/webhooks-examples') as {
    readonly name: string
    readonly examples: readonly Record<string, unknown>[]
  }[]
  return definitions.flatMap(({ name, examples }) => examples.map((payload) => ({ event: name, payload })))
}
