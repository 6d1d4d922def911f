// A process of a soak, as the soak sees it: asked things, and watched for an end that nobody asked for.

import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Ask, Word } from './serve.ts'

/** One process. */
export class Child {
  readonly name: string
  /** What it did that it should not have. */
  readonly mishaps: string[] = []
  /** What it warned of, and how often. */
  readonly warnings = new Map<string, number>()
  readonly #process: ChildProcess
  readonly #ended: Promise<void>
  readonly #open = new Map<number, Open>()
  #asked = 0
  #isOver = false
  #stderr = ''

  private constructor(name: string, program: string, input: object) {
    this.name = name
    this.#process = fork(fileURLToPath(new URL(program, import.meta.url)), [], {
      execArgv: ['--import', 'tsx', '--expose-gc', '--unhandled-rejections=strict', ...PLAIN],
      env: { ...process.env, SOAK_PROGRAM: JSON.stringify(input) },
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    })
    this.#process.stderr!.on('data', (data) => {
      this.#stderr = (this.#stderr + data).slice(-2_000)
    })
    this.#process.on('message', (word: Word) => this.#heard(word))
    this.#process.on('error', (error) => this.#fail(error))
    this.#ended = new Promise((resolve) => {
      this.#process.on('exit', (code, signal) => {
        const says = `${name} ended by itself (${code ?? signal}): ${this.#stderr}`
        if (!this.#isOver || code !== 0) this.mishaps.push(says)
        this.#fail(new Error(says))
        resolve()
      })
    })
  }

  /** Start one; answers when it is ready. */
  static async start(name: string, program: string, input: object): Promise<Child> {
    const child = new Child(name, program, input)
    await child.#answer(0)
    return child
  }

  /** Ask it; waits for the answer. */
  ask<Answer>(verb: string, argument?: unknown): Promise<Answer> {
    const id = ++this.#asked
    const answer = this.#answer<Answer>(id)
    this.#process.send({ id, verb, argument } satisfies Ask)
    return answer
  }

  /** It stops in good order, and then nothing keeps its process alive. */
  async stop(): Promise<void> {
    this.#isOver = true
    await this.ask('stop')
    const timer = setTimeout(() => {
      this.mishaps.push(`${this.name} has stopped, and its process does not end`)
      this.kill()
    }, END_WITHIN_MS)
    await this.#ended
    clearTimeout(timer)
  }

  /** Whatever happened: nothing is left running. */
  kill(): void {
    this.#isOver = true
    this.#process.kill('SIGKILL')
  }

  #answer<Answer>(id: number): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#open.set(id, { resolve: resolve as Open['resolve'], reject })
    })
  }

  #heard({ mishap, warning, to, answer, failed }: Word): void {
    if (mishap !== undefined) this.mishaps.push(`${this.name}: ${mishap}`)
    if (warning !== undefined) this.warnings.set(warning, (this.warnings.get(warning) ?? 0) + 1)
    if (to === undefined) return
    const open = this.#open.get(to)
    this.#open.delete(to)
    if (failed === undefined) open?.resolve(answer)
    else open?.reject(new Error(`${this.name}: ${failed}`))
  }

  #fail(error: Error): void {
    for (const { reject } of this.#open.values()) reject(error)
    this.#open.clear()
  }
}

/**
 * V8 goes on for half an hour to compile one function after the other for speed, and keeps what it has compiled on the
 * heap: some hundred kilobytes in which a small leak could hide. So it only interprets, and keeps what it has read.
 */
const PLAIN = ['--no-opt', '--no-sparkplug', '--no-lazy-feedback-allocation', '--no-flush-bytecode']

interface Open {
  resolve(answer: unknown): void
  reject(error: Error): void
}

/** Nothing holds it up then; a busy machine may. */
const END_WITHIN_MS = 5_000
