// A reference, no queue: insert … select from the JSON document that Rowlock sends, into a copy of its table with the
// same indexes. What is left to Rowlock above this is checking, waking and answering.

import type pg from 'pg'
import { rowlock } from '../kit/rowlock.ts'
import { batchesOf, connected } from './shape.ts'

let session: pg.Client

export const peer = {
  configuration:
    'insert … select from jsonb_to_recordset of the same document, 1,000 jobs a statement, into a copy of ' +
    'rowlock.waiting with its indexes and constraints; the columns are those that Rowlock writes.',
  async prepare({ url }: { url: string }) {
    const client = rowlock.createRowlock({ connectionString: url })
    await client.migrate()
    await client.close()
    session = await connected({ url })
    await session.query('create table copied (like rowlock.waiting including all)')
    await session.end()
  },
  async open(place: { url: string }) {
    session = await connected(place)
  },
  async enqueue(amount: { jobs: number; batch: number }) {
    for (const ns of batchesOf(amount)) {
      const document = JSON.stringify(ns.map((n) => ({ kind: 'noop', input: { n } })))
      await session.query({
        name: 'copied',
        text: `insert into copied (id, available_at, enqueued_at, priority, queue, kind, input)
               select nextval('rowlock.job_id'), coalesce(g.available_at, now()), now(),
                      coalesce(g.priority, 0)::smallint, coalesce(g.queue, 'default'), g.kind, g.input
                 from jsonb_to_recordset($1::jsonb) as g (
                      kind text, input jsonb, queue text, priority numeric, available_at timestamptz)`,
        values: [document],
      })
    }
  },
  async close() {
    await session.end()
  },
}
