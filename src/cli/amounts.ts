// Numbers, lengths of time and instants as people read them.

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
] as const

/** A length in its two largest units: `3m 12s`, `4d 3h`; below ten seconds with a tenth, below one in milliseconds. */
export function span(ms: number): string {
  if (ms < 0) return `-${span(-ms)}`
  if (ms < 1_000) return `${Math.floor(ms)}ms`
  if (ms < 10_000) return `${Math.floor(ms / 100) / 10}s`
  const at = UNITS.findIndex(([, size]) => ms >= size)
  const [unit, size] = UNITS[at]!
  const whole = `${Math.floor(ms / size)}${unit}`
  const next = UNITS[at + 1]
  if (next === undefined) return whole
  const rest = Math.floor((ms % size) / next[1])
  return rest === 0 ? whole : `${whole} ${rest}${next[0]}`
}

/** How long ago, or how long until: `3m 12s ago`, `in 2h`; `now` within a second. */
export function ago(at: Date, now: Date): string {
  const ms = now.getTime() - at.getTime()
  if (Math.abs(ms) < 1_000) return 'now'
  return ms > 0 ? `${span(ms)} ago` : `in ${span(-ms)}`
}

/** An instant to the second, in UTC: what one says to another at three in the morning must not depend on a place. */
export function instant(at: Date): string {
  return at
    .toISOString()
    .replace('T', ' ')
    .replace(/\.\d+Z$/, 'Z')
}

/** `12,000`, or `about 12,000`; `not counted` where none was seen of what is too much to look at. */
export function count(n: number, about = false): string {
  if (about && n === 0) return 'not counted'
  return `${about ? 'about ' : ''}${Math.round(n).toLocaleString('en')}`
}

/** `1 job`, `2 jobs`, `about 12,000 jobs`; `an uncounted number of jobs`. */
export function jobs(n: number, about = false): string {
  if (about && n === 0) return 'an uncounted number of jobs'
  return `${count(n, about)} job${n === 1 ? '' : 's'}`
}
