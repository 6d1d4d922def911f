// A process that begins a transaction of Rowlock's, holds a lock in it, and waits until the server has had enough.

import { setTimeout as sleep } from 'node:timers/promises'
import { Database } from '../../src/engine/database.ts'

const { url } = JSON.parse(process.env.CHILD_INPUT!) as { url: string }
process.on('disconnect', () => process.exit(99))
const database = new Database({ connectionString: url, statementTimeoutMs: 1_500 })
const error = await database
  .transaction(
    async (client) => {
      await client.query('lock table business in exclusive mode')
      process.send!({ holds: true })
      for (;;) {
        await sleep(50)
        await client.query('select')
      }
    },
    { write: 'lock' },
  )
  .catch((failure: Error) => failure)
process.send!({ error: error.message })
