// Cuts a script into statements, as psql does: at semicolons outside quotes, comments and function bodies.

const TOKEN =
  /--[^\n]*|\/\*[\s\S]*?\*\/|'(?:[^']|'')*'|"(?:[^"]|"")*"|\$(\w*)\$[\s\S]*?\$\1\$|;|[^;'"$/-]+|[\s\S]/g

export function statementsOf(script: string): string[] {
  const statements: string[] = []
  let open = ''
  for (const [token] of script.matchAll(TOKEN)) {
    if (token !== ';') {
      if (!token.startsWith('--')) open += token
      continue
    }
    statements.push(open.trim())
    open = ''
  }
  return [...statements, open.trim()].filter((statement) => statement !== '')
}
