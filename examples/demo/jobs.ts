// The jobs of the shop: plain values that its producer and its workers share.

import { defineJob, exponential } from 'rowlock'
import { z } from 'zod'

// Short waits: a demo has half a minute. A real shop would say 5s to 1h, which is the default.
const backoff = exponential({ min: '200ms', max: '1s' })

/** Send that e-mail. */
export const sendEmail = defineJob('send-email', {
  queue: 'email',
  input: z.object({ reference: z.string(), to: z.email(), template: z.string().default('confirmation') }),
  result: z.object({ messageId: z.string() }),
  retry: { maxAttempts: 12, backoff },
  timeout: '15s',
})

/** Resize that image. */
export const resizePicture = defineJob('resize-picture', {
  queue: 'pictures',
  input: z.object({ reference: z.string(), picture: z.string(), width: z.int().positive() }),
  retry: { maxAttempts: 5, backoff },
  timeout: '30s',
})

/** Sync that record to the ERP. */
export const syncRecord = defineJob('sync-record', {
  queue: 'erp',
  input: z.object({ reference: z.string(), event: z.string(), payload: z.record(z.string(), z.unknown()) }),
  result: z.object({ number: z.int(), repeated: z.boolean() }),
  // An ERP that is down for a while must not make dead letters of the records that met it.
  retry: { maxAttempts: 40, backoff },
  timeout: '20s',
})

/** Book that invoice: in the same database, and so exactly once. */
export const bookInvoice = defineJob('book-invoice', {
  queue: 'ledger',
  input: z.object({ reference: z.string(), cents: z.int() }),
  retry: { maxAttempts: 10, backoff },
  timeout: '20s',
})
