// The names of the tests of a file, as vitest puts them together, read from its text without running it.

import ts from 'typescript'
import { read } from '../support/tree.ts'

const TESTS = new Set(['test', 'it'])
/** What vitest puts a value in. */
const PLACE = /%[a-z#]|\$[a-zA-Z][\w.]*/g

const known = new Map<string, readonly string[]>()

/** Full names, ` › ` between describe and test; titles with places for values as they are written. */
export function titlesOf(file: string): readonly string[] {
  const found = known.get(file) ?? titlesIn(read(file))
  known.set(file, found)
  return found
}

/** The same of a text. */
export function titlesIn(text: string): string[] {
  const titles: string[] = []
  const visit = (node: ts.Node, above: readonly string[]): void => {
    const name = ts.isCallExpression(node) ? callee(node.expression) : undefined
    const title = ts.isCallExpression(node) ? titleOf(node.arguments[0]) : undefined
    if (title !== undefined && name !== undefined && TESTS.has(name))
      titles.push([...above, title].join(' › '))
    const inside = title !== undefined && name === 'describe' ? [...above, title] : above
    ts.forEachChild(node, (child) => visit(child, inside))
  }
  visit(ts.createSourceFile('x.ts', text, ts.ScriptTarget.Latest), [])
  return titles
}

/** Whether a test of this name is among them: as it is written, or with values in its places. */
export function hasTest(titles: readonly string[], name: string): boolean {
  return titles.some((title) => title === name || pattern(title).test(name))
}

/** `test`, of `test.runIf(…).each(…)`. */
function callee(expression: ts.Expression): string | undefined {
  if (ts.isIdentifier(expression)) return expression.text
  if (ts.isCallExpression(expression) || ts.isPropertyAccessExpression(expression)) {
    return callee(expression.expression)
  }
  return undefined
}

function titleOf(argument: ts.Expression | undefined): string | undefined {
  if (argument === undefined) return undefined
  if (ts.isStringLiteralLike(argument)) return argument.text
  if (!ts.isTemplateExpression(argument)) return undefined
  return argument.templateSpans.reduce((all, { literal }) => `${all}%s${literal.text}`, argument.head.text)
}

function pattern(title: string): RegExp {
  const parts = title.split(PLACE).map((part) => part.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
  return new RegExp(`^${parts.join('.+')}$`)
}
