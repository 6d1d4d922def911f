// Start an embedded server, or attach to the one that runs already; let go of it.

import { untilGone } from './alive.ts'
import { findBinaries } from './binaries.ts'
import { ensureCluster } from './cluster.ts'
import { unavailable } from './failure.ts'
import { type Hold, joinKeeper } from './hold.ts'
import { type Home, openHome } from './home.ts'
import { adopt, answered, type Held, launch } from './launch.ts'
import { type CheckedOptions, checkOptions, type EmbeddedOptions, type EmbeddedServer } from './options.ts'
import { runningPostmaster } from './postmaster.ts'
import { inTurn } from './turn.ts'

/**
 * Run a PostgreSQL below a folder, or attach to the one that already does.
 *
 * A server belongs to those who use it: each process that started or attached holds it, and it stops when the last
 * one has let go, has ended or was killed. It listens on 127.0.0.1 only and asks for a random password, which is
 * kept in a file only its owner can read. Data stays in the folder from one start to the next. It does not keep
 * its process from ending.
 *
 * Errors: EMBEDDED_UNAVAILABLE with what to do next; INVALID_OPTION.
 *
 * @example
 * const server = await startEmbedded({ dataDir: '.rowlock/postgres' })
 * const rowlock = createRowlock({ connectionString: server.url })
 * await server.stop()
 */
export async function startEmbedded(options: EmbeddedOptions = {}): Promise<EmbeddedServer> {
  const checked = checkOptions(options)
  const home = openHome(checked.dataDir, checked.log)
  const { answer, hold, attached } = await inTurn(home.turns, checked.startTimeoutMs * 2, () =>
    enter(home, checked),
  )
  const stop = keepHold(home, hold, checked)
  return { url: answer.url, port: answer.port, pid: answer.pid, version: answer.version, attached, stop }
}

async function enter(home: Home, options: CheckedOptions): Promise<Held & { attached: boolean }> {
  const deadline = performance.now() + options.startTimeoutMs
  for (;;) {
    const running = runningPostmaster(home.data)
    if (!running) {
      const binaries = findBinaries(options, home.account)
      await ensureCluster(home, binaries, options.fsync)
      return { ...(await launch(home, binaries, options)), attached: false }
    }
    const hold = await holdRunning(home, running.pid, deadline - performance.now())
    const held = hold && (await answered(home, hold, deadline - performance.now()))
    if (held) return { ...held, attached: true }
    if (performance.now() > deadline) throw unavailable(`the server on ${home.data} comes and goes.`)
  }
}

/** Undefined when the server was on its way out, and is gone now. */
async function holdRunning(home: Home, pid: number, boundMs: number): Promise<Hold | undefined> {
  const joined = await joinKeeper(home.keeper)
  if (joined === undefined) return adopt(home, pid)
  if (joined !== 'stopping') return joined
  if (await untilGone(pid, boundMs)) return undefined
  throw unavailable(`the server on ${home.data} (process ${pid}) is stopping and does not come to an end.`)
}

/** Hold on when a keeper is killed: whoever notices puts a new one over the server. */
function keepHold(home: Home, first: Hold, options: CheckedOptions): () => Promise<void> {
  let current = Promise.resolve<Hold | undefined>(first)
  let stopped: Promise<void> | undefined
  const renew = () =>
    inTurn(home.turns, options.startTimeoutMs * 2, async () => {
      const running = runningPostmaster(home.data)
      return running ? holdRunning(home, running.pid, options.startTimeoutMs) : undefined
    })
  const watch = (hold: Hold | undefined) =>
    hold?.onLost(() => {
      if (stopped) return
      current = renew().catch(() => undefined)
      void current.then(watch)
    })
  watch(first)
  const leave = async () => {
    const hold = await current
    if ((await hold?.leave()) === 'lost' && runningPostmaster(home.data)) await (await renew())?.leave()
  }
  return () => {
    stopped ??= leave()
    return stopped
  }
}
