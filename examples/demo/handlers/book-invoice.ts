// Books one invoice in the job's own transaction: the row and the completion commit together. There is no unique
// constraint on the ledger on purpose, so that a row booked twice would be seen.

import { setTimeout as sleep } from 'node:timers/promises'
import { handleInTransaction } from 'rowlock'
import { bookInvoice } from '../jobs.ts'

export function invoiceHandler() {
  return handleInTransaction(bookInvoice, async ({ input, tx, signal, idempotencyKey }) => {
    const { reference, cents } = input
    await tx.query('insert into shop.ledger (reference, idempotency_key, cents) values ($1, $2, $3)', [
      reference,
      idempotencyKey,
      cents,
    ])
    // Bookkeepers are thorough; a worker that dies now takes its row with it.
    await sleep(100 + (cents % 900), undefined, { signal })
  })
}
