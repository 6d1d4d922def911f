// One worker process: handlers for all four kinds under a lease of 5 s. It lives no longer than the process that
// started it.

import { createRowlock, type Logger } from 'rowlock'
import { invoiceHandler } from './handlers/book-invoice.ts'
import { pictureHandler } from './handlers/resize-picture.ts'
import { emailHandler } from './handlers/send-email.ts'
import { recordHandler } from './handlers/sync-record.ts'

/** What a worker is told at its start. */
export interface WorkerConfig {
  readonly name: string
  readonly connectionString: string
  readonly smtpPort: number
  readonly erpUrl: string
  readonly secret: string
  readonly pictureFolder: string
}

/** What a worker tells. */
export type WorkerNews =
  | { readonly type: 'leased'; readonly workerId: string }
  | { readonly type: 'reaped'; readonly count: number }
  | {
      readonly type: 'log'
      readonly level: 'warn' | 'error'
      readonly fields: object
      readonly message: string
    }

const GONE_AFTER_MS = 3_000

const tell = (news: WorkerNews) => {
  if (process.connected) process.send?.(news, undefined, undefined, () => {})
}

const logger: Logger = {
  debug() {},
  info() {},
  warn: (fields, message) => tell({ type: 'log', level: 'warn', fields, message }),
  error: (fields, message) => tell({ type: 'log', level: 'error', fields, message }),
}

async function work(config: WorkerConfig): Promise<void> {
  const rowlock = createRowlock({ connectionString: config.connectionString })
  const worker = rowlock.worker({
    name: config.name,
    handlers: [
      emailHandler(config.smtpPort),
      pictureHandler(config.pictureFolder),
      recordHandler(config.erpUrl, config.secret),
      invoiceHandler(),
    ],
    queues: {
      email: { concurrency: 4 },
      pictures: { concurrency: 2 },
      erp: { concurrency: 8 },
      ledger: { concurrency: 4 },
    },
    lease: '5s',
    grace: '10s',
    signals: true,
    logger,
  })
  worker.on('leased', ({ workerId }) => tell({ type: 'leased', workerId }))
  worker.on('reaped', ({ jobs }) => tell({ type: 'reaped', count: jobs.length }))
  worker.on('stopped', () => {
    void rowlock.close().then(() => process.connected && process.disconnect())
  })
  process.once('disconnect', () => {
    // Whoever started us is gone, or we are done. Either way nothing is left to wait for.
    setTimeout(() => process.exit(), GONE_AFTER_MS).unref()
    void worker.stop({ grace: 0 })
  })
  await worker.start()
}

process.once('message', (config: WorkerConfig) => {
  work(config).catch((error: unknown) => {
    process.stderr.write(`${(error as Error).stack ?? error}\n`)
    process.exit(1)
  })
})
