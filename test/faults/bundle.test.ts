// Rowlock bundled into one file that lies elsewhere: it migrates, enqueues and works without a file beside it.

import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build } from 'vite'
import { expect, test } from 'vitest'
import { createDatabase } from '../support/server.ts'
import { ROOT } from '../support/tree.ts'

const PROGRAM = `
import { createRowlock, defineJob, handle } from '${ROOT}src/index.ts'
import { drain } from '${ROOT}src/testing/index.ts'

const rowlock = createRowlock({ connectionString: process.argv[2] })
await rowlock.migrate()
const job = defineJob('bundled')
const { id } = await rowlock.enqueue(job, { n: 1 })
const worker = rowlock.worker({ handlers: [handle(job, ({ input }) => input.n + 1)] })
await worker.start()
while ((await rowlock.job(id)).state !== 'done') await new Promise((resolve) => setTimeout(resolve, 20))
await worker.stop()
await rowlock.enqueue(job, { n: 2 })
const drained = await drain(rowlock, { handlers: [handle(job, () => {})] })
console.log(JSON.stringify({ result: (await rowlock.job(id)).result, done: drained.done }))
await rowlock.close()
`

test('a single file in another folder does all of it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'rowlock-bundle-'))
  const db = await createDatabase('bundle')
  try {
    writeFileSync(join(folder, 'program.mjs'), PROGRAM)
    await build({
      root: folder,
      logLevel: 'error',
      configFile: false,
      ssr: { noExternal: true },
      build: {
        ssr: join(folder, 'program.mjs'),
        outDir: join(folder, 'alone'),
        target: 'node20',
        minify: true,
        rollupOptions: { external: ['pg-native'], output: { entryFileNames: 'all.mjs' } },
      },
    })
    expect(readdirSync(join(folder, 'alone'))).toEqual(['all.mjs'])
    const { DATABASE_URL: _, NODE_OPTIONS: __, ...env } = process.env
    const ran = spawnSync(process.execPath, [join(folder, 'alone/all.mjs'), db.url], {
      cwd: tmpdir(),
      env,
      encoding: 'utf8',
      timeout: 90_000,
    })
    expect([ran.status, ran.stderr]).toEqual([0, ''])
    expect(JSON.parse(ran.stdout)).toEqual({ result: 2, done: 1 })
  } finally {
    await db.drop()
    rmSync(folder, { recursive: true, force: true })
  }
})
