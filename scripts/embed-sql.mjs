// Writes src/engine/sql.generated.ts: the SQL files as strings, so that a bundle needs no file beside it.
// `--check` writes nothing and fails when the file is not in step; `--relock` accepts edited migrations (before a release).
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'

const root = new URL('../', import.meta.url)
const lockFile = new URL('sql/migrations/hashes.json', root)
const outFile = new URL('src/engine/sql.generated.ts', root)
const hash = (text) => createHash('sha256').update(text).digest('hex').slice(0, 16)
const files = (folder) =>
  readdirSync(new URL(folder, root))
    .filter((name) => name.endsWith('.sql'))
    .sort()
    .map((name) => ({
      name: name.slice(0, -4),
      sql: readFileSync(new URL(`${folder}${name}`, root), 'utf8'),
    }))

const label = (sql, word) => sql.match(new RegExp(`^-- ${word}: (\\w+)`, 'm'))?.[1]
const migrations = files('sql/migrations/').map(({ name, sql }) => {
  const [, number, title] = name.match(/^(\d{4})_(\w+)$/) ?? []
  if (!number) throw new Error(`sql/migrations/${name}.sql: the name must be NNNN_name`)
  const breaking = label(sql, 'breaking')
  if (breaking !== 'yes' && breaking !== 'no') throw new Error(`${name}.sql: say "-- breaking: yes" or "no"`)
  return {
    number: Number(number),
    name: title,
    hash: hash(sql),
    breaking: breaking === 'yes',
    transaction: label(sql, 'transaction') !== 'no',
    sql,
  }
})
const locked = existsSync(lockFile) ? JSON.parse(readFileSync(lockFile, 'utf8')) : {}
for (const { number, name, hash: found } of migrations) {
  const key = `${String(number).padStart(4, '0')}_${name}`
  if (locked[key] && locked[key] !== found && !process.argv.includes('--relock')) {
    console.error(`sql/migrations/${key}.sql was edited; an applied migration never changes: add a new one`)
    process.exit(1)
  }
  locked[key] = found
}
const routines = [...files('sql/functions/'), ...files('sql/views/')].map(({ name, sql }) => ({
  name,
  hash: hash(sql),
  sql,
}))

const text = `// Made by scripts/embed-sql.mjs from sql/: do not edit.
import type { Migration, Routine } from './migration.ts'

export const MIGRATIONS: readonly Migration[] = ${JSON.stringify(migrations, null, 2)}

export const ROUTINES: readonly Routine[] = ${JSON.stringify(routines, null, 2)}
`
const lockText = `${JSON.stringify(locked, null, 2)}\n`
if (process.argv.includes('--check')) {
  const same = (file, wanted) => existsSync(file) && readFileSync(file, 'utf8') === wanted
  if (!same(outFile, text) || !same(lockFile, lockText)) {
    console.error('generated SQL is not in step: run npm run generate')
    process.exit(1)
  }
} else {
  writeFileSync(outFile, text)
  writeFileSync(lockFile, lockText)
}
