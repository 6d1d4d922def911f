// `npm run mutants`: takes out each guard of the list and runs the test that must miss it. What survives lacks a test.
//
//   npm run mutants -- [words that its name or file has …] [--from file] [--explore test/engine/claim.test.ts …]
//
// --explore runs all tests of these files instead, and says which of them fail.

import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { startEmbedded } from '../../src/embedded/index.ts'
import { programs } from '../../test/support/majors.ts'
import { judge } from './judge.ts'
import { MUTANTS } from './list.ts'
import { Trials } from './trial.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { explore: { type: 'string', multiple: true }, from: { type: 'string', default: '' } },
})
const first = MUTANTS.findIndex(({ file }) => file.includes(values.from))
const chosen = MUTANTS.slice(Math.max(0, first)).filter(({ name, file }) =>
  positionals.every((word) => `${file} ${name}`.toLowerCase().includes(word.toLowerCase())),
)
const dataDir = mkdtempSync(join(tmpdir(), 'rowlock-mutants-'))
const server = await startEmbedded({
  ...programs(),
  dataDir,
  settings: { max_connections: 100 },
  fsync: false,
})
let survivors = 0
try {
  const trials = await Trials.begin(server.url)
  for (const mutant of chosen) {
    const { isCaught, line, failed } = await judge(trials, mutant, values.explore)
    if (!isCaught) survivors++
    console.log(line)
    if (values.explore !== undefined) for (const test of failed.slice(0, 12)) console.log(`    ${test}`)
  }
  await trials.end()
} finally {
  await server.stop()
}
console.log(`${chosen.length} mutants, ${survivors} survived`)
process.exit(survivors > 0 ? 1 : 0)
