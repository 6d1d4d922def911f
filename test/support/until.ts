// Waits for something to become true, with a bound that says what it waited for.

/** Wait until `condition` answers something truthy, and return that. */
export async function until<T>(
  what: string,
  condition: () => T | Promise<T>,
  { withinMs = 15_000, everyMs = 10 }: { readonly withinMs?: number; readonly everyMs?: number } = {},
): Promise<NonNullable<T>> {
  const end = performance.now() + withinMs
  for (;;) {
    const found = await condition()
    if (found) return found as NonNullable<T>
    if (performance.now() > end) throw new Error(`waited ${withinMs} ms in vain until ${what}`)
    await new Promise((resolve) => setTimeout(resolve, everyMs))
  }
}
