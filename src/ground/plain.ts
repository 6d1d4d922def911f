// What a plain object is: one whose prototype is null or some realm's Object.prototype.

/** Is this a plain object? Never throws: a revoked proxy is none. */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false
  try {
    if (Array.isArray(value)) return false
    const prototype = Object.getPrototypeOf(value)
    return prototype === null || prototype === Object.prototype || isForeignObjectPrototype(prototype)
  } catch {
    return false
  }
}

/** Object.prototype of another realm, as structuredClone returns it inside a test runner's sandbox. */
function isForeignObjectPrototype(prototype: object): boolean {
  return Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, 'isPrototypeOf')
}
