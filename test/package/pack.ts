// The package as npm would publish it, its installation in a project, and the life of a job there.

import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { ROOT } from '../support/tree.ts'

const exec = promisify(execFile)
const PARTS = [
  'src',
  'sql',
  'package.json',
  'tsconfig.json',
  'tsconfig.build.json',
  'README.md',
  'CHANGELOG.md',
  'LICENSE',
]

/** Build and pack what is in the tree, in this folder. Answers where the tarball is. */
export async function pack(folder: string): Promise<string> {
  const source = join(folder, 'source')
  mkdirSync(source)
  for (const name of PARTS) cpSync(join(ROOT, name), join(source, name), { recursive: true })
  symlinkSync(join(ROOT, 'node_modules'), join(source, 'node_modules'))
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc')
  await exec(process.execPath, [tsc, '-p', 'tsconfig.build.json'], { cwd: source })
  await exec('npm', ['pack', '--ignore-scripts', '--pack-destination', folder], { cwd: source })
  return join(folder, readdirSync(folder).find((name) => name.endsWith('.tgz'))!)
}

/** Install these in a project. */
export async function install(project: string, ...packages: string[]): Promise<void> {
  const flags = ['--no-audit', '--no-fund', '--ignore-scripts', '--prefer-offline']
  await exec('npm', ['install', ...flags, ...packages], { cwd: project })
}

/** Migrates, enqueues, works, and prints `done you`; the imports go before it. */
export const LIFE = `
  const hello = defineJob('hello')
  const rowlock = createRowlock({ connectionString: process.env.DATABASE_URL })
  const main = async () => {
    await rowlock.migrate()
    const { id } = await rowlock.enqueue(hello, { to: 'you' })
    let worker
    await new Promise((resolve, reject) => {
      const greet = handle(hello, async ({ input }) => { setTimeout(resolve, 50); return input.to })
      worker = rowlock.worker({ handlers: [greet] })
      worker.start().catch(reject)
    })
    await worker.stop()
    const job = await rowlock.job(id)
    await rowlock.close()
    console.log(job.state, job.result)
  }
  main().catch((error) => { console.error(error); process.exitCode = 1 })
`
