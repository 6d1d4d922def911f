// `npm run bench -- <scenario> [--quick] [--json] [--rounds n]`: measures, writes what it measured to bench/results/,
// and makes bench/RESULTS.md anew from all that is there.

import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { fileURLToPath } from 'node:url'
import { type Asked, asked, HELP } from './kit/asked.ts'
import { build } from './kit/build.ts'
import { installPeers } from './kit/install.ts'
import { machine } from './kit/machine.ts'
import { type BenchRedis, startRedis } from './kit/redis.ts'
import { type Recorded, section, writeReport } from './kit/report.ts'
import type { Bench, Scenario } from './kit/scenario.ts'
import { type BenchServer, startServer } from './kit/server.ts'

const FOLDER = fileURLToPath(new URL('./', import.meta.url))
const QUICK_ROUNDS = 2
const ROUNDS = 5
/** What is left of two minutes is for building, and for a last one that takes long. */
const QUICK_MS = 90_000

const say = (line: string): void => {
  process.stderr.write(`${line}\n`)
}

const names = readdirSync(join(FOLDER, 'scenarios'))
  .filter((file) => file.endsWith('.ts'))
  .map((file) => file.slice(0, -'.ts'.length))
  .sort()

const question = asked(process.argv.slice(2), names)
if (question.kind === 'wrong') {
  say(question.why)
  process.exit(2)
}
if (question.kind === 'list') {
  const lines = await Promise.all(
    names.map(async (name) => `  ${name.padEnd(10)} ${(await load(name)).title}`),
  )
  process.stdout.write(
    `${HELP}\n${lines.join('\n')}\n  ${'all'.padEnd(10)} each of them, one after the other\n`,
  )
  process.exit(0)
}
if (question.kind === 'report') {
  writeReport(FOLDER)
  process.exit(0)
}

installPeers(FOLDER, say)
build(say)
let failed = false
for (const name of question.names) {
  try {
    await one(await load(name), question)
  } catch (error) {
    if (question.names.length === 1) throw error
    failed = true
    say(`${name} failed: ${String((error as Error).stack ?? error)}`)
  }
}
process.exit(failed ? 1 : 0)

async function load(name: string): Promise<Scenario> {
  return (await import(new URL(`./scenarios/${name}.ts`, import.meta.url).href)).scenario
}

async function one(scenario: Scenario, { quick, json, rounds, yes, major, among }: Asked): Promise<void> {
  if (scenario.needs !== undefined && !quick && !yes && !(await agreed(scenario))) {
    say(`${scenario.name} was not run: it needs ${scenario.needs}; --yes says that this is all right`)
    return
  }
  const kept = keeper(major)
  const began = performance.now()
  const bench: Bench = {
    quick,
    among,
    get budgetMs() {
      return quick ? QUICK_MS - (performance.now() - began) : Number.POSITIVE_INFINITY
    },
    rounds: rounds ?? (quick ? QUICK_ROUNDS : (scenario.rounds ?? ROUNDS)),
    server: kept.server,
    redis: kept.redis,
    say,
  }
  try {
    say(`${scenario.name}: ${bench.rounds} rounds${quick ? ', quick' : ''}`)
    const result = await scenario.run(bench)
    // Who was cut off by a signal looks like one that failed: nothing of it is a result.
    if (kept.isInterrupted()) return await new Promise(() => {})
    const recorded: Recorded = {
      scenario: scenario.name,
      title: scenario.title,
      how: scenario.how,
      quick,
      rounds: result.rounds ?? bench.rounds,
      date: new Date().toISOString(),
      tookS: Math.round((performance.now() - began) / 1000),
      machine: machine(),
      ...(await kept.versions()),
      result,
    }
    if (among === undefined) record(recorded)
    const { ours, peers, ratios, counted } = result
    if (json) {
      const line = { scenario: scenario.name, rounds: recorded.rounds, ours, peers, ratios, counted }
      process.stdout.write(`${JSON.stringify(line)}\n`)
    } else {
      process.stdout.write(`${section(recorded)}\n`)
    }
  } finally {
    await kept.stop()
  }
}

/** A quick run has a file of its own: it never stands where a whole one stood. */
function record(recorded: Recorded): void {
  const folder = join(FOLDER, 'results')
  mkdirSync(folder, { recursive: true })
  const file = join(folder, `${recorded.scenario}${recorded.quick ? '.quick' : ''}.json`)
  writeFileSync(file, `${JSON.stringify(recorded, null, 2)}\n`)
  // Results are kept with the sources, so they are laid out as those are.
  const biome = join(FOLDER, '../node_modules/@biomejs/biome/bin/biome')
  spawnSync(process.execPath, [biome, 'format', '--write', file], { stdio: 'ignore' })
  writeReport(FOLDER)
}

async function agreed({ name, needs }: Scenario): Promise<boolean> {
  if (!process.stdin.isTTY) return false
  const ask = createInterface({ input: process.stdin, output: process.stderr })
  const answer = await ask.question(`${name} needs ${needs}. Run it? [y/N] `)
  ask.close()
  return /^y(es)?$/i.test(answer.trim())
}

/** Declared, so that it is there while the lines above are still being run. */
function fileOf(aof: boolean): Record<string, string> {
  return aof ? { appendonly: 'yes', appendfsync: 'always' } : { appendonly: 'no' }
}

/** Servers of one scenario: started when first asked for, stopped at its end and at that of the process. */
function keeper(major: number) {
  const servers = new Map<string, Promise<BenchServer>>()
  const redises = new Map<boolean, Promise<BenchRedis | undefined>>()
  const stop = async (): Promise<void> => {
    for (const server of servers.values()) await (await server).stop()
    for (const redis of redises.values()) await (await redis)?.stop()
    servers.clear()
    redises.clear()
  }
  let interrupted = false
  const onSignal = (): void => {
    interrupted = true
    void stop().finally(() => process.exit(130))
  }
  process.once('SIGINT', onSignal).once('SIGTERM', onSignal)
  return {
    server(options: Parameters<Bench['server']>[0] = {}): Promise<BenchServer> {
      const key = JSON.stringify(options)
      const known = servers.get(key) ?? startServer({ major, ...options })
      servers.set(key, known)
      return known
    },
    redis({ aof }: { readonly aof: boolean }): Promise<BenchRedis | undefined> {
      const known = redises.get(aof) ?? startRedis({ aof })
      redises.set(aof, known)
      return known
    },
    async versions(): Promise<Pick<Recorded, 'servers'>> {
      const postgres = await Promise.all([...servers.values()])
      const redis = await Promise.all([...redises].map(async ([aof, one]) => ({ aof, one: await one })))
      return {
        servers: [
          ...postgres.map(({ version, settings }) => ({ name: `PostgreSQL ${version}`, settings })),
          ...redis.flatMap(({ aof, one }) =>
            one === undefined ? [] : [{ name: `Redis ${one.version}`, settings: fileOf(aof) }],
          ),
        ],
      }
    },
    isInterrupted: () => interrupted,
    async stop() {
      process.removeListener('SIGINT', onSignal).removeListener('SIGTERM', onSignal)
      await stop()
    },
  }
}
