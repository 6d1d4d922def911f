// Posts one record to the ERP, signed, with the idempotency key as a header: the ERP applies a key once.

import { handle, permanent, snooze } from 'rowlock'
import { z } from 'zod'
import { syncRecord } from '../jobs.ts'
import { sign } from '../signature.ts'

const Receipt = z.object({ number: z.int(), repeated: z.boolean() })

export function recordHandler(erpUrl: string, secret: string) {
  return handle(syncRecord, async ({ input, signal, idempotencyKey }) => {
    const body = JSON.stringify(input)
    const response = await fetch(`${erpUrl}/records`, {
      method: 'POST',
      body,
      headers: {
        'content-type': 'application/json',
        'idempotency-key': idempotencyKey,
        'x-signature-256': sign(secret, idempotencyKey, body),
      },
      signal,
    }).catch((error: unknown) => {
      // fetch says "fetch failed"; why it failed is what a person wants to read.
      throw (error as { cause?: unknown }).cause ?? error
    })
    const answer = await response.text()
    // Too many requests is no failure of ours: come back when asked to.
    if (response.status === 429) return snooze(`${Number(response.headers.get('retry-after') ?? 1)}s`)
    if (response.ok) return Receipt.parse(JSON.parse(answer))
    const error = Object.assign(new Error(`the ERP answered ${response.status}: ${answer}`), {
      code: `http_${response.status}`,
    })
    throw response.status >= 500 ? error : permanent(error)
  })
}
