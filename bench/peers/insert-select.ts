// A reference, no queue: insert … select from the JSON documents that Rowlock sends, into a copy of its table with the
// same indexes. What is left to Rowlock above this is checking, waking and answering.

import type pg from 'pg'
import { rowlock } from '../kit/rowlock.ts'
import { batchesOf, connected } from './shape.ts'

let session: pg.Client

export const peer = {
  configuration:
    'insert … select from the documents that Rowlock sends (what the jobs share, and an array of their inputs), 1,000 ' +
    'jobs a statement, into a copy of rowlock.waiting with its indexes and constraints; no ids are answered.',
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
      await session.query({
        name: 'copied',
        text: `insert into copied (id, available_at, enqueued_at, priority, queue, kind, input)
               select nextval('rowlock.job_id'), now(), now(), 0::smallint, 'default', j.kind, i.input
                 from jsonb_to_record($1::jsonb) as j (kind text), jsonb_array_elements($2::jsonb) as i (input)`,
        values: ['{"kind":"noop"}', JSON.stringify(ns.map((n) => ({ n })))],
      })
    }
  },
  async close() {
    await session.end()
  },
}
