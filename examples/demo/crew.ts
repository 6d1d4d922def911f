// The worker processes: hired, killed, replaced, and sent home in the end.

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { WorkerConfig, WorkerNews } from './worker.ts'

/** One worker process. */
export interface Hand {
  readonly name: string
  readonly pid: number
  /** Its lease, once it has one. */
  readonly workerId: string | undefined
}

interface Member extends Hand {
  workerId: string | undefined
  readonly child: ChildProcess
  stderr: string
}

export interface CrewOptions {
  readonly config: Omit<WorkerConfig, 'name'>
  readonly onEvent: (text: string) => void
}

const FAREWELL_MS = 12_000
const LOG_LINES = 40
const PROGRAM = fileURLToPath(new URL('worker.ts', import.meta.url))

export class Crew {
  /** What workers warned of, newest last. */
  readonly log: string[] = []
  /** Every process that ever belonged to the crew. */
  readonly pids: number[] = []
  readonly #options: CrewOptions
  readonly #members = new Set<Member>()
  #hired = 0
  #killed = 0
  #isLeaving = false

  constructor(options: CrewOptions) {
    this.#options = options
  }

  get hands(): readonly Hand[] {
    return [...this.#members]
  }

  get killed(): number {
    return this.#killed
  }

  /** Start one more; resolves when it has its lease. */
  async hire(): Promise<Hand> {
    const name = `worker ${++this.#hired}`
    // A group of its own: Ctrl-C is for the one who leads, who then lets the workers finish.
    const child = fork(PROGRAM, [], { detached: true, stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
    const member: Member = { name, pid: child.pid ?? 0, workerId: undefined, child, stderr: '' }
    if (child.pid === undefined) throw new Error(`${name} could not be started`)
    this.pids.push(child.pid)
    this.#members.add(member)
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      member.stderr = (member.stderr + text).slice(-4_000)
    })
    child.once('exit', (code, signal) => this.#left(member, code, signal))
    child.on('error', () => {})
    child.send({ ...this.#options.config, name }, () => {})
    await new Promise<void>((resolve, reject) => {
      child.once('exit', () => reject(new Error(`${name} ended before it had a lease:\n${member.stderr}`)))
      child.on('message', (news: WorkerNews) => {
        this.#hear(member, news)
        if (news.type === 'leased') resolve()
      })
    })
    return member
  }

  /** SIGKILL: no goodbye, no hand-back. Answers false when it is gone already. */
  async kill(workerId: string): Promise<Hand | undefined> {
    const member = [...this.#members].find((hand) => hand.workerId === workerId)
    if (member === undefined) return undefined
    this.#members.delete(member)
    this.#killed++
    const gone = once(member.child, 'exit')
    member.child.kill('SIGKILL')
    await gone
    return member
  }

  /** Let everybody finish and go home; who does not is killed. */
  async stop(): Promise<void> {
    this.#isLeaving = true
    await Promise.all(
      [...this.#members].map(async ({ child }) => {
        if (child.exitCode !== null || child.signalCode !== null) return
        const gone = once(child, 'exit')
        child.kill('SIGTERM')
        const impatient = setTimeout(() => child.kill('SIGKILL'), FAREWELL_MS)
        await gone
        clearTimeout(impatient)
      }),
    )
  }

  /** At once, and without waiting. */
  killAll(): void {
    this.#isLeaving = true
    for (const { child } of this.#members) child.kill('SIGKILL')
  }

  #hear(member: Member, news: WorkerNews): void {
    if (news.type === 'leased') {
      member.workerId = news.workerId
    } else if (news.type === 'reaped') {
      const jobs = news.count === 1 ? 'one job' : `${news.count} jobs`
      this.#options.onEvent(`${member.name} reclaimed ${jobs} of a lost worker`)
    } else {
      this.log.push(`${member.name}: ${news.message} ${JSON.stringify(news.fields)}`)
      if (this.log.length > LOG_LINES) this.log.shift()
    }
  }

  /** Nobody sent it home: a supervisor would start another, and so do we. */
  #left(member: Member, code: number | null, signal: string | null): void {
    if (!this.#members.delete(member) || this.#isLeaving) return
    this.log.push(`${member.name} ended by itself (${signal ?? code}): ${member.stderr}`)
    this.#options.onEvent(`${member.name} ended by itself (${signal ?? `exit ${code}`}); another takes over`)
    if (member.workerId !== undefined) this.hire().catch((error) => this.log.push(String(error)))
  }
}
