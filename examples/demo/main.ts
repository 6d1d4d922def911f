// The demo's main process: sets the stage, plays the scenario, watches the queue drain, and gives the account.
// `./demo` starts it; exit code 0 only if the books balance.

import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { type Account, accountLine, accountTable, isBalanced } from './account.ts'
import { gather } from './evidence.ts'
import { judge, shortfalls } from './judgement.ts'
import { Progress } from './progress.ts'
import { play } from './scenario.ts'
import { type Stage, setStage } from './stage.ts'
import { countJobs, describeOpenJobs, openJobs } from './watch.ts'

/** One order for each record of `@octokit/webhooks-examples`. */
const ORDERS = 329
/** A test beside much else waits so many times as long as somebody who looks on. */
const PATIENCE = Number(process.env.ROWLOCK_DEMO_PATIENCE ?? 1)
/** With `--once` everything must have ended by then; the account and the way home take a few seconds more. */
const ONCE_WITHIN_MS = 70_000 * PATIENCE
const DRAIN_WITHIN_MS = 30_000
/** Whatever hangs: nobody waits longer. */
const LAST_MS = 84_000 * PATIENCE

const { values } = parseArgs({
  options: { once: { type: 'boolean' }, json: { type: 'boolean' }, pictures: { type: 'string' } },
})
const { once: isOnce = false, json: isJson = false, pictures } = values

const startedAt = performance.now()
const progress = new Progress()
const onEvent = (text: string) => progress.event(text)
const teardown: (() => unknown)[] = []
const stopping = new AbortController()
let stage: Stage | undefined
let signals = 0

for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => onSignal(name))
function onSignal(name: string): void {
  if (++signals === 1) {
    onEvent(`${name}: no new jobs; what is in is finished first (once more: stop at once)`)
    stopping.abort()
    if (stage === undefined) void leave(130)
    else setTimeout(() => giveUp('the drain hangs'), DRAIN_WITHIN_MS + 20_000).unref()
  } else {
    stage?.crew.killAll()
    void leave(130)
  }
}
// Whoever read along may be gone; the account is taken all the same.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
if (isOnce) setTimeout(() => giveUp('the demo hangs'), LAST_MS).unref()

try {
  stage = await setStage({ pictures, onEvent, teardown })
  const account = await run(stage)
  await stage.crew.stop()
  progress.close()
  if (isJson) process.stdout.write(`${accountLine(account)}\n`)
  ;(isJson ? process.stderr : process.stdout).write(accountTable(account))
  await leave(isBalanced(account) ? (isOnce && account.cutShort !== undefined ? 130 : 0) : 1)
} catch (error) {
  const { message, stack } = error as Error
  onEvent(`the demo failed: ${stage === undefined ? message : stack}`)
  for (const line of stage?.crew.log ?? []) onEvent(line)
  await leave(1)
}

async function run(stage: Stage): Promise<Account> {
  const { pool, crew, erp, smtp, shop } = stage
  let isPlayed = false
  const { signal } = stopping
  const played = play({ stage, orders: ORDERS, isOnce, signal, onEvent }).then(() => {
    isPlayed = true
  })
  let failure: unknown
  played.catch((error: unknown) => {
    failure = error
  })
  let drainBy = isOnce ? startedAt + ONCE_WITHIN_MS : Number.POSITIVE_INFINITY
  for (;;) {
    if (failure !== undefined) throw failure
    if (signal.aborted) drainBy = Math.min(drainBy, performance.now() + DRAIN_WITHIN_MS)
    const mayEnd = isPlayed
    const counts = await countJobs(pool)
    const workers = crew.hands.map(({ name }) => name)
    progress.show({ counts, acknowledged: shop.acknowledged.length, erp: erp.mood, workers })
    if (mayEnd && openJobs(counts) === 0) break
    if (performance.now() > drainBy) {
      stopping.abort()
      onEvent('time is up, and these jobs have not ended:')
      for (const line of [...(await describeOpenJobs(pool)), ...crew.log]) onEvent(line)
      break
    }
    await sleep(progress.everyMs)
  }
  const evidence = await gather(stage)
  const judgement = judge(evidence)
  return {
    judgement,
    evidence,
    missing: isOnce && signals === 0 ? shortfalls(judgement.figures, crew.killed) : [],
    cutShort: signals > 0 && isOnce ? 'cut short by a signal' : undefined,
    seconds: (performance.now() - startedAt) / 1000,
    repeated: { emails: smtp.book.repeated, records: erp.book.repeated },
    killedWorkers: crew.killed,
    pids: [process.pid, stage.server.pid, ...crew.pids],
  }
}

/** Take everything down, last one first, each with a bound, and end. */
async function leave(code: number): Promise<never> {
  progress.close()
  for (const step of teardown.splice(0).reverse()) {
    await Promise.race([
      Promise.resolve()
        .then(step)
        .catch(() => {}),
      sleep(15_000),
    ])
  }
  process.exit(code)
}

function giveUp(why: string): void {
  progress.close()
  process.stderr.write(`${why}; giving up\n${(stage?.crew.log ?? []).join('\n')}\n`)
  stage?.crew.killAll()
  // The embedded server stops by itself when the process that holds it ends.
  process.exit(1)
}
