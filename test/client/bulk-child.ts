// The program of a bulk change that tests kill. It says over IPC how far it got.

import { createRowlock } from '../../src/index.ts'

const { url, id, limit = 10 } = JSON.parse(process.env.CHILD_INPUT!)
// Never left behind by a test that was itself killed.
process.on('disconnect', () => process.exit(99))

const bulk = await createRowlock({ connectionString: url }).openBulk(id)
await bulk.run({ limit, onStep: ({ changed }) => process.send?.({ changed }) })
process.send?.({ ended: true })
