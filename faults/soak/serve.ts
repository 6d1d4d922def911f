// A child's side of its talk with the soak: it answers what it is asked, and tells what should not have been.

/** What a child says. */
export interface Word {
  readonly mishap?: string
  readonly warning?: string
  /** The question that this answers; 0: it is ready. */
  readonly to?: number
  readonly answer?: unknown
  readonly failed?: string
}

/** What a child is asked. */
export interface Ask {
  readonly id: number
  readonly verb: string
  readonly argument?: unknown
}

/** Begin to talk. After the answer to `stop` the process ends by itself, or is stuck. */
export function serve(): {
  say(word: Word): void
  answer(verbs: Readonly<Record<string, (argument: never) => Promise<unknown>>>): void
} {
  const say = (word: Word) => void process.send?.(word)
  process.on('unhandledRejection', (error) => say({ mishap: `unhandled rejection: ${String(error)}` }))
  process.on('uncaughtExceptionMonitor', (error) => say({ mishap: `uncaught: ${String(error.stack)}` }))
  process.on('warning', (warning) => say({ mishap: `warning: ${String(warning)}` }))
  // Nothing is left behind by a soak that was killed.
  process.on('disconnect', () => process.exit(99))
  return {
    say,
    answer(verbs) {
      process.on('message', ({ id, verb, argument }: Ask) => {
        verbs[verb]!(argument as never).then(
          (answer) => {
            say({ to: id, answer })
            if (verb !== 'stop') return
            process.removeAllListeners('disconnect')
            process.disconnect()
          },
          (error) => say({ to: id, failed: String((error as Error).stack) }),
        )
      })
    },
  }
}
