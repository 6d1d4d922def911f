// `npm run faults -- --seconds N --seed S --json`: one run of the chaos loop on a server of its own.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { createRowlock } from '../src/index.ts'
import { accountOf, badFigures, writeEvidence } from './account.ts'
import { type ChaosOptions, runChaos } from './chaos.ts'
import { startCluster } from './cluster.ts'
import { NEMESES } from './nemesis/all.ts'
import { planFrom } from './plan.ts'

const HELP = `usage: npm run faults -- [--seconds N] [--seed S] [--json] [--faults a,b] [--pace MS] [--replay FILE]

  --seconds N    how long things break, default 60
  --seed S       what breaks, when and how; default: a fresh one, which is printed
  --json         one line of JSON with all figures; otherwise the figures as a list
  --faults a,b   only these: ${NEMESES.map(({ name }) => name).join(', ')}
  --pace MS      between two faults this much more, default 0: each alone, where it is more than 7000
  --replay FILE  the log of a run: its acts again, at the same times, with its seed
`

const { values } = parseArgs({
  options: {
    seconds: { type: 'string' },
    seed: { type: 'string' },
    json: { type: 'boolean', default: false },
    faults: { type: 'string' },
    pace: { type: 'string', default: '0' },
    replay: { type: 'string' },
    help: { type: 'boolean', short: 'h', default: false },
  },
})
if (values.help) {
  process.stdout.write(HELP)
  process.exit(0)
}
const log = values.replay === undefined ? '' : readFileSync(values.replay, 'utf8')
/** The first line of a log says what its run was like. */
const was = (log === '' ? {} : JSON.parse(log.slice(0, log.indexOf('\n')))) as {
  seed?: number
  seconds?: number
}
const seconds = Number(values.seconds ?? was.seconds ?? 60)
const seed = Number(values.seed ?? was.seed ?? Math.floor(Math.random() * 2 ** 31))
const paceMs = Number(values.pace)
if (!(seconds > 0) || !(paceMs >= 0) || !Number.isInteger(seed)) {
  process.stderr.write(`--seconds, --pace and --seed take numbers\n\n${HELP}`)
  process.exit(2)
}

const folder = join(fileURLToPath(new URL('../', import.meta.url)), 'artifacts/faults')
mkdirSync(folder, { recursive: true })
const logPath = join(folder, `seed-${seed}.acts`)
const lines = [JSON.stringify({ seed, seconds })]
process.stderr.write(`seed ${seed}, ${seconds} s; the acts are in ${logPath}\n`)

const cluster = await startCluster()
try {
  const rowlock = createRowlock({ connectionString: cluster.url })
  await rowlock.migrate()
  await rowlock.close()
  const options: ChaosOptions = {
    seconds,
    seed,
    paceMs,
    // Each fault alone shows what it costs where there is room.
    ...(paceMs > 0 && { pauseMs: 400 }),
    url: cluster.url,
    restart: cluster.restart,
    complaints: cluster.complaints,
    log: (line) => void lines.push(line),
    ...(values.faults !== undefined && { faults: values.faults.split(',') }),
    ...(values.replay !== undefined && { acts: planFrom(log) }),
  }
  const result = await runChaos(options).finally(() => writeFileSync(logPath, `${lines.join('\n')}\n`))
  const account = accountOf(seconds, seed, result)
  const bad = badFigures(account)
  process.stdout.write(`${values.json ? JSON.stringify(account) : JSON.stringify(account, null, 1)}\n`)
  if (bad.length > 0) {
    process.exitCode = 1
    process.stderr.write(`${bad.join(', ')}: see ${writeEvidence(folder, account, result)}\n`)
  }
} finally {
  await cluster.stop()
}
