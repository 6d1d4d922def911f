// Where in a value something is, as JavaScript would write it: `a.b[3]["odd key"]`.

const NAME = /^[A-Za-z_$][\w$]*$/
const LONGEST_KEY = 60
const LONGEST = 400

/** Write a path from its keys. Long keys and long paths are cut in the middle; nothing in it is unprintable. */
export function pathText(keys: readonly PropertyKey[]): string {
  let text = ''
  for (const key of keys) text += step(key, text === '')
  if (text.length <= LONGEST) return text
  return `${text.slice(0, LONGEST / 2)}…${text.slice(-LONGEST / 2)}`
}

function step(key: PropertyKey, first: boolean): string {
  if (typeof key === 'number') return `[${key}]`
  if (typeof key === 'symbol') return `[${String(key)}]`
  if (NAME.test(key) && key.length <= LONGEST_KEY) return first ? key : `.${key}`
  const shown = key.length <= LONGEST_KEY ? key : `${key.slice(0, LONGEST_KEY)}…`
  return `[${JSON.stringify(shown)}]`
}
