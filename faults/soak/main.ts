// `npm run soak -- --minutes N --warmup M --seed S --json`: a soak on a server of its own.

import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { createRowlock } from '../../src/index.ts'
import { startCluster } from '../cluster.ts'
import { accountOf, isBad, tableOf } from './account.ts'
import { LEAKS, type Leak } from './leak.ts'
import { ROUND_MS, runSoak } from './run.ts'
import { FEWEST } from './slope.ts'

const HELP = `usage: npm run soak -- [--minutes N] [--warmup N] [--seed S] [--rate N] [--leak a,b] [--json]

  --minutes N    how long is counted, default 20
  --warmup N     for so many minutes before nothing is counted, default 5
  --seed S       which jobs and when; default: a fresh one, which is printed
  --rate N       jobs a second, default 60
  --leak a,b     handlers that keep what they should not: ${LEAKS.join(', ')}; the soak must find it
  --json         one line of JSON on stdout, the table on stderr; otherwise the table alone
`

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '20' },
    warmup: { type: 'string', default: '5' },
    seed: { type: 'string' },
    rate: { type: 'string', default: '60' },
    leak: { type: 'string' },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  },
})
if (values.help) {
  process.stdout.write(HELP)
  process.exit(0)
}
const minutes = Number(values.minutes)
const warmup = Number(values.warmup)
const rate = Number(values.rate)
const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31))
const leaks = (values.leak?.split(',') ?? []) as Leak[]
if (!(minutes > 0) || !(warmup >= 0) || !(rate > 0) || !Number.isInteger(seed)) {
  process.stderr.write(`--minutes, --warmup, --rate and --seed take numbers\n\n${HELP}`)
  process.exit(2)
}
if (minutes * 60_000 < FEWEST * ROUND_MS) {
  process.stderr.write(`${minutes} minutes are too few rounds for a slope\n\n${HELP}`)
  process.exit(2)
}
if (!leaks.every((leak) => LEAKS.includes(leak))) {
  process.stderr.write(`--leak takes ${LEAKS.join(', ')}\n\n${HELP}`)
  process.exit(2)
}

const folder = join(fileURLToPath(new URL('../../', import.meta.url)), 'artifacts/faults')
mkdirSync(folder, { recursive: true })
const logPath = join(folder, `soak-${seed}.log`)
writeFileSync(logPath, '')
process.stderr.write(`seed ${seed}, ${warmup} + ${minutes} minutes; its rounds are in ${logPath}\n`)

const cluster = await startCluster()
try {
  const rowlock = createRowlock({ connectionString: cluster.url })
  await rowlock.migrate()
  await rowlock.close()
  const result = await runSoak({
    url: cluster.url,
    seconds: minutes * 60,
    warmUpSeconds: warmup * 60,
    seed,
    rate,
    leaks,
    log: (line) => appendFileSync(logPath, `${line}\n`),
  })
  writeFileSync(join(folder, `soak-${seed}.series.json`), JSON.stringify(result.series))
  const account = accountOf(minutes, warmup, seed, result)
  const table = `${tableOf(account)}\n`
  if (values.json) {
    process.stderr.write(table)
    process.stdout.write(`${JSON.stringify(account)}\n`)
  } else {
    const { series: _, ...figures } = account
    process.stdout.write(`${table}\n${JSON.stringify(figures, null, 1)}\n`)
  }
  if (isBad(account)) process.exitCode = 1
} finally {
  await cluster.stop()
}
