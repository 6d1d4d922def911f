// Sizes in words, for messages.

/**
 * Say a number of bytes as a person would: `512 bytes`, `64 kB`, `1.2 MB`. Powers of ten, as the limits are.
 *
 * Exact below 10,000; above, rounded up to three digits, so that a size above a limit never reads like the limit.
 */
export function describeBytes(bytes: number): string {
  if (bytes < 10_000) return `${bytes.toLocaleString('en')} ${bytes === 1 ? 'byte' : 'bytes'}`
  const [size, unit] = bytes < 1_000_000 ? [1_000, 'kB'] : [1_000_000, 'MB']
  const step = 10 ** Math.floor(Math.log10(bytes)) / 100
  return `${(Math.ceil(bytes / step) * step) / size} ${unit}`
}
