// A reference, no queue: COPY into a bare copy of Rowlock's table. What storing the same rows costs at the least.

import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type pg from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import { rowlock } from '../kit/rowlock.ts'
import { batchesOf, connected } from './shape.ts'

let session: pg.Client

export const peer = {
  configuration:
    'COPY … FROM STDIN, 1,000 rows a statement, into a copy of rowlock.waiting without indexes and constraints.',
  async prepare({ url }: { url: string }) {
    const client = rowlock.createRowlock({ connectionString: url })
    await client.migrate()
    await client.close()
    session = await connected({ url })
    await session.query('create table bare (like rowlock.waiting including defaults)')
    await session.end()
  },
  async open(place: { url: string }) {
    session = await connected(place)
  },
  async enqueue(amount: { jobs: number; batch: number }) {
    const columns = 'id, available_at, enqueued_at, queue, kind, input'
    for (const ns of batchesOf(amount)) {
      const at = new Date().toISOString()
      const rows = ns.map((n) => `${n}\t${at}\t${at}\tdefault\tnoop\t{"n": ${n}}\n`).join('')
      await pipeline(Readable.from([rows]), session.query(copyFrom(`copy bare (${columns}) from stdin`)))
    }
  },
  async close() {
    await session.end()
  },
}
