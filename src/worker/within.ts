// Waits with a bound: nothing at a shutdown may wait for ever.

/** Wait for a promise, but not longer than this. */
export async function within(promise: Promise<unknown>, ms: number, or?: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms)
  })
  await Promise.race([promise.catch(() => {}), late, ...(or ? [or] : [])])
  clearTimeout(timer)
}
