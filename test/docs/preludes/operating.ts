// What the page types and asks about: three dead letters of an ERP, three jobs of a tenant, one of a wrong run.

import { defineJob, fixed, handle, type Rowlock } from 'rowlock'
import { drain } from 'rowlock/testing'

class ErpError extends Error {
  override name = 'ErpError'
}

const syncInvoice = defineJob<{ invoice: number }>('sync-invoice', {
  queue: 'erp',
  retry: { maxAttempts: 1, backoff: fixed(0) },
})
const render = defineJob<{ page: number }>('render', { queue: 'reports' })

/** Jobs 1 to 3 are dead letters, 4 to 6 wait, 7 is scheduled. */
export async function prepare(rowlock: Rowlock): Promise<void> {
  await rowlock.enqueueMany([4711, 4712, 4713].map((invoice) => syncInvoice.with({ invoice })))
  await drain(rowlock, {
    handlers: [
      handle(syncInvoice, ({ input }) => {
        throw new ErpError(`the ERP said 503 for invoice ${input.invoice}`)
      }),
    ],
  })
  await rowlock.enqueueMany([1, 2, 3].map((page) => render.with({ page }, { tenantId: 'acme' })))
  await rowlock.enqueue(syncInvoice, { invoice: 4714 }, { delay: '1h', metadata: { run: 'november' } })
}
