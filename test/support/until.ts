// Waits for something to become true, with a bound that says what it waited for.

/**
 * How long a wait may take that is not told otherwise: no measure of anything, only the end of a hang. On a machine
 * with much else to do everything takes ten times as long. A mutant need not be waited for so long.
 */
export const PATIENCE_MS = process.env.ROWLOCK_MUTANT === undefined ? 60_000 : 15_000

/** Wait until `condition` answers something truthy, and return that. */
export async function until<T>(
  what: string,
  condition: () => T | Promise<T>,
  { withinMs = PATIENCE_MS, everyMs = 10 }: { readonly withinMs?: number; readonly everyMs?: number } = {},
): Promise<NonNullable<T>> {
  const end = performance.now() + withinMs
  for (;;) {
    const found = await condition()
    if (found) return found as NonNullable<T>
    if (performance.now() > end) throw new Error(`waited ${withinMs} ms in vain until ${what}`)
    await new Promise((resolve) => setTimeout(resolve, everyMs))
  }
}
