// Which statements begin or end a transaction as a whole: a handler must leave those to its worker.

const BLANK = /^(?:[\s;]+|--[^\n]*(?:\n|$))/
const ENDING = /^(begin|start\s+transaction|commit|end|abort|prepare\s+transaction|rollback)\b/i
const TO_SAVEPOINT = /^rollback(\s+(work|transaction))?\s+to\b/i

/** The word by which a text begins or ends a transaction; undefined for any other, savepoints included. */
export function endingWord(text: unknown): string | undefined {
  // pg takes an object with the text in it too.
  const sql = typeof text === 'string' ? text : (text as { text?: unknown } | null | undefined)?.text
  if (typeof sql !== 'string') return undefined
  const rest = withoutLead(sql)
  if (TO_SAVEPOINT.test(rest)) return undefined
  return ENDING.exec(rest)?.[1]?.toLowerCase().replace(/\s+/, ' ')
}

/** What follows the blanks, comments and empty statements that a text begins with. */
function withoutLead(sql: string): string {
  let rest = sql
  for (;;) {
    const blank = BLANK.exec(rest)?.[0].length ?? commentLength(rest)
    if (blank === 0) return rest
    rest = rest.slice(blank)
  }
}

/** Of the comment that the text begins with: they nest. */
function commentLength(sql: string): number {
  if (!sql.startsWith('/*')) return 0
  let depth = 0
  for (const { 0: mark, index } of sql.matchAll(/\/\*|\*\//g)) {
    depth += mark === '/*' ? 1 : -1
    if (depth === 0) return index + 2
  }
  return 0
}
