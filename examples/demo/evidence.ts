// Gathers what the account is judged by: the shop's list, the queue's word, the receivers' books.

import { bookInvoice, resizePicture, sendEmail, syncRecord } from './jobs.ts'
import type { Books, Evidence } from './judgement.ts'
import { readPictureBook } from './pictures.ts'
import type { Stage } from './stage.ts'
import { readJobs } from './watch.ts'

export async function gather({ shop, pool, smtp, erp, pictureFolder }: Stage): Promise<Evidence> {
  const { rows } = await pool.query<{ reference: string; times: number }>(
    'select reference, count(*)::integer as times from shop.ledger group by reference',
  )
  const books: Books = new Map([
    [sendEmail.kind, smtp.book.effects],
    [syncRecord.kind, erp.book.effects],
    [resizePicture.kind, await readPictureBook(pictureFolder)],
    [bookInvoice.kind, new Map(rows.map(({ reference, times }) => [reference, times]))],
  ] as const)
  return { acknowledged: shop.acknowledged, takenBack: shop.takenBack, jobs: await readJobs(pool), books }
}
