// The workers of a run: three processes, killed, frozen, replaced, and watched for ends that nobody asked for.

import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** How workers are started. */
export interface CrewOptions {
  /** The queue's database, as the workers reach it. */
  readonly url: string
  /** The same, past every fault. */
  readonly ledgerUrl: string
  readonly size: number
  readonly leaseMs: number
  /** Is told what workers warn of. */
  readonly log?: (line: string) => void
}

/** One process. */
export interface Member {
  readonly pid: number
  /** Resolves when it works, or has ended before it did. */
  readonly ready: Promise<void>
}

const WORKER = fileURLToPath(new URL('./worker.ts', import.meta.url))
const SKEW = new URL('./skew.mjs', import.meta.url).href
const RESPAWN_AFTER_MS = 200
const STOP_WITHIN_MS = 60_000

interface Process extends Member {
  readonly child: ChildProcess
  readonly ended: Promise<void>
  expected: boolean
  isFrozen: boolean
  stderr: string
}

/** Started by `start`; whoever ends is replaced, until `stop`. */
export class Crew {
  readonly #options: CrewOptions
  readonly #members = new Set<Process>()
  #isCalm = false
  #isOver = false
  /** What processes did that nobody asked for. */
  readonly mishaps: string[] = []
  /** Whom we killed, and when. */
  readonly deaths: { readonly pid: number; readonly at: number }[] = []
  /** Workers that drained themselves since too many deaf handlers held their slots, as they should. */
  unfit = 0
  /** What workers warned of, each once. */
  readonly warnings = new Map<string, number>()

  constructor(options: CrewOptions) {
    this.#options = options
  }

  /** Those that are alive and not frozen. */
  get members(): readonly Member[] {
    return [...this.#members].filter((one) => !one.isFrozen && !one.expected)
  }

  async start(): Promise<void> {
    for (let n = 0; n < this.#options.size; n++) this.spawn()
    await Promise.all([...this.#members].map(({ ready }) => ready))
  }

  /** One more process; its clock off by so much. */
  spawn(skewMs = 0): Member {
    const { url, ledgerUrl, leaseMs } = this.#options
    const input = { url, ledger: ledgerUrl, lease: leaseMs, calm: this.#isCalm }
    const skewed = skewMs === 0 ? [] : ['--import', SKEW]
    const child = fork(WORKER, [], {
      execArgv: ['--import', 'tsx', ...skewed, '--unhandled-rejections=strict'],
      env: { ...process.env, FAULTS_WORKER: JSON.stringify(input), FAULTS_SKEW_MS: String(skewMs) },
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    })
    let isReady = () => {}
    let hasEnded = () => {}
    const one: Process = {
      pid: child.pid!,
      child,
      ready: new Promise((resolve) => {
        isReady = resolve
      }),
      ended: new Promise((resolve) => {
        hasEnded = resolve
      }),
      expected: false,
      isFrozen: false,
      stderr: '',
    }
    this.#members.add(one)
    child.stderr!.on('data', (data) => {
      one.stderr = (one.stderr + data).slice(-2_000)
    })
    child.on('message', (message: Word) => {
      if (message.ready) isReady()
      this.#heard(one, message)
    })
    child.on('error', () => {})
    child.on('exit', (code, signal) => {
      this.#members.delete(one)
      isReady()
      hasEnded()
      this.#left(one, code, signal)
    })
    return one
  }

  #heard(one: Process, { mishap, log, stopped, fit }: Word): void {
    if (mishap !== undefined) this.mishaps.push(`process ${one.pid}: ${mishap}`)
    if (log !== undefined) {
      this.warnings.set(log, (this.warnings.get(log) ?? 0) + 1)
      this.#options.log?.(`process ${one.pid} warns: ${log}`)
    }
    if (stopped && fit === false) {
      this.unfit++
      one.expected = true
    }
  }

  #left(one: Process, code: number | null, signal: string | null): void {
    if (!one.expected) {
      this.mishaps.push(`process ${one.pid} ended by itself (${code ?? signal}): ${one.stderr}`)
    }
    if (this.#isOver || this.#members.size >= this.#options.size) return
    setTimeout(() => {
      if (!this.#isOver && this.#members.size < this.#options.size) this.spawn()
    }, RESPAWN_AFTER_MS)
  }

  /** SIGKILL, and a successor. */
  async kill({ pid }: Member): Promise<void> {
    const one = this.#find(pid)
    if (one === undefined) return
    one.expected = true
    this.deaths.push({ pid, at: Date.now() })
    one.child.kill('SIGKILL')
    await one.ended
  }

  /** SIGSTOP, and SIGCONT after a while. */
  freeze({ pid }: Member): void {
    const one = this.#find(pid)
    if (one === undefined) return
    one.isFrozen = true
    one.child.kill('SIGSTOP')
  }

  thaw(only?: Member): void {
    for (const one of this.#members) {
      if (!one.isFrozen || (only !== undefined && only.pid !== one.pid)) continue
      one.isFrozen = false
      one.child.kill('SIGCONT')
    }
  }

  /** Hold up the event loop of this one. */
  block({ pid }: Member, blockMs: number): void {
    this.#tell(pid, { blockMs })
  }

  /** End in good order, as a deployment does; a successor comes. */
  async replace({ pid }: Member, graceMs: number): Promise<void> {
    const one = this.#find(pid)
    if (one === undefined) return
    one.expected = true
    this.#tell(pid, { stop: { grace: graceMs } })
    await this.#gone(one, 'was told to stop')
  }

  /** From now on every handler ends well and at once. */
  async calm(): Promise<void> {
    this.#isCalm = true
    this.thaw()
    for (const { pid } of this.#members) this.#tell(pid, { calm: true })
    while (this.#members.size < this.#options.size) this.spawn()
  }

  /** End all of them in good order. */
  async stop(): Promise<void> {
    this.#isOver = true
    this.thaw()
    await Promise.all(
      [...this.#members].map(async (one) => {
        await one.ready
        one.expected = true
        this.#tell(one.pid, { stop: { grace: 2_000 } })
        await this.#gone(one, 'was told to stop at the end')
      }),
    )
  }

  /** Whatever happened: nothing is left running. */
  end(): void {
    this.#isOver = true
    for (const one of this.#members) {
      one.expected = true
      one.child.kill('SIGKILL')
    }
  }

  async #gone(one: Process, why: string): Promise<void> {
    const timer = setTimeout(() => {
      this.mishaps.push(`process ${one.pid} ${why} and did not end in ${STOP_WITHIN_MS} ms: ${one.stderr}`)
      this.deaths.push({ pid: one.pid, at: Date.now() })
      one.child.kill('SIGKILL')
    }, STOP_WITHIN_MS)
    await one.ended
    clearTimeout(timer)
  }

  #find(pid: number): Process | undefined {
    return [...this.#members].find((one) => one.pid === pid)
  }

  #tell(pid: number, message: object): void {
    const child = this.#find(pid)?.child
    if (child?.connected) child.send(message, () => {})
  }
}

interface Word {
  readonly ready?: boolean
  readonly mishap?: string
  readonly log?: string
  readonly stopped?: boolean
  readonly fit?: boolean
}
