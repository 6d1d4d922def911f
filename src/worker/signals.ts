// SIGTERM and SIGINT, for workers that ask for them: each one is told; the listeners go when the worker ends.

/** Answers a function that gives the signals back. */
export function takeSignals(onSignal: () => void): () => void {
  const listener = () => onSignal()
  process.on('SIGTERM', listener)
  process.on('SIGINT', listener)
  return () => {
    process.removeListener('SIGTERM', listener)
    process.removeListener('SIGINT', listener)
  }
}
