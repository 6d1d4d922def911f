// Which release this is, and which of two is the newer.

/** The release of this package; a test holds it to package.json. */
export const RELEASE = '0.2.0'

/** Is release `a` (`1.10.0`) newer than `b`? */
export function isNewer(a: string, b: string): boolean {
  const [left, right] = [a, b].map((release) => release.split(/[.+-]/).map(Number)) as [number[], number[]]
  for (let part = 0; part < 3; part++) {
    const difference = (left[part] || 0) - (right[part] || 0)
    if (difference !== 0) return difference > 0
  }
  return false
}
