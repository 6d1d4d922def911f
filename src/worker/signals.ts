// SIGTERM and SIGINT, for workers that ask for them: each one is told; the listeners go when the worker ends. Handlers
// that ignored their signal would keep the process alive then: it is ended when no worker of that kind is left.

const taking = new Set<() => void>()
let mustEnd = false

/** Answers a function that gives the signals back; told that handlers are left behind, it lets the process end. */
export function takeSignals(onSignal: () => void): (handlersLeft: boolean) => void {
  const listener = () => onSignal()
  taking.add(listener)
  process.on('SIGTERM', listener)
  process.on('SIGINT', listener)
  return (handlersLeft) => {
    taking.delete(listener)
    process.removeListener('SIGTERM', listener)
    process.removeListener('SIGINT', listener)
    mustEnd ||= handlersLeft
    // Whoever waits for the stop has its turn first.
    if (mustEnd && taking.size === 0) setImmediate(() => process.exit(process.exitCode ?? 0))
  }
}
