// Makes one program of a page: its ts and sql blocks in order, behind what the page takes for granted (its prelude).
//
// ts            part of the program            ts scope      the same, in braces: names of its own
// ts no-run     shown, not compiled            sql           run on the page's database, statement by statement
// sql fails[=S] must be refused [with S]       sql session=a on a connection of its own
// sql waits     must wait for a lock; what it prints comes with the next block of its session
// text output   what the block before it prints; … stands for anything

import { existsSync, readFileSync } from 'node:fs'
import { type Block, mark, type Page, ROOT } from './markdown.ts'

export interface Program {
  readonly page: Page
  readonly text: string
  /** The line of the page that a line of the program came from, both counted from 1. */
  pageLine(line: number): number | undefined
}

/** The folder of programs, from the root. Inside the repository, so that imports resolve as in its tests. */
export const FOLDER = 'artifacts/docs'

const IMPORT = /^import\s+(?:(type)\s+)?(?:(\w+)\s*,?\s*)?(?:\{([^}]*)\}\s*)?from\s+'([^']+)'\s*$/gm

/** Is this block part of the page's program? */
export function isRun({ lang, marks }: Block): boolean {
  return (lang === 'ts' || lang === 'sql') && !marks.includes('no-run')
}

export function programOf(page: Page): Program | undefined {
  const blocks = page.blocks.filter(isRun)
  if (blocks.length === 0) return undefined
  const imports = new Imports()
  const source = blocks.map(({ text }) => text).join('\n')
  for (const name of ['every-page', nameOf(page)])
    takeForGranted(`test/docs/preludes/${name}.ts`, source, imports)
  imports.add('../../test/docs/step.ts', 'step as step_')
  imports.add('../../test/docs/step.ts', 'sql as sql_')
  imports.add('../../test/docs/step.ts', 'end as end_')

  const body: { text: string; line?: number }[] = []
  for (const block of blocks) {
    body.push({ text: `step_(${block.line})` })
    if (block.lang === 'sql') {
      const options = JSON.stringify({
        session: mark(block, 'session'),
        fails: mark(block, 'fails'),
        waits: mark(block, 'waits'),
      })
      body.push({ text: `await sql_(${JSON.stringify(block.text)}, ${options})` })
      continue
    }
    const inScope = block.marks.includes('scope')
    if (inScope) body.push({ text: '{' })
    const rest = imports.take(block.text)
    for (const [index, text] of rest.split('\n').entries()) body.push({ text, line: block.line + index })
    if (inScope) body.push({ text: '}' })
  }
  const head = [`// Made of ${page.path} by test/docs: do not edit.`, ...imports.lines()]
  const lines = [...head.map((text) => ({ text })), ...body, { text: 'await end_()' }, { text: 'export {}' }]
  return {
    page,
    text: `${lines.map(({ text }) => text).join('\n')}\n`,
    pageLine: (line) =>
      (lines.slice(0, line).findLast((each) => 'line' in each) as { line?: number } | undefined)?.line,
  }
}

/** What a prelude exports and the page does not declare itself. */
function takeForGranted(prelude: string, page: string, imports: Imports): void {
  if (!existsSync(`${ROOT}${prelude}`)) return
  const source = readFileSync(`${ROOT}${prelude}`, 'utf8')
  for (const [, what, name] of source.matchAll(
    /^export (?:async )?(const|function|class|interface|type) (\w+)/gm,
  )) {
    if (new RegExp(`\\b(const|let|function|class|interface|type) ${name}\\b`).test(page)) continue
    const isType = what === 'interface' || what === 'type'
    imports.add(`../../${prelude}`, isType ? `type ${name}` : name!)
  }
}

export const nameOf = (page: Page): string =>
  page.path
    .replace(/^docs\//, '')
    .replace(/\.md$/, '')
    .toLowerCase()

/** Blocks of one page may import the same name; imports of the reader's own files fall away: they are one program. */
class Imports {
  readonly #byModule = new Map<string, Set<string>>()

  add(module: string, name: string): void {
    const names = this.#byModule.get(module) ?? new Set()
    this.#byModule.set(module, names.add(name))
  }

  /** Take the imports out of a text, and leave its lines where they are. */
  take(text: string): string {
    return text.replaceAll(IMPORT, (whole, isType, standard, named, module) => {
      if (!module.startsWith('.')) {
        if (standard) this.add(module, `default as ${standard}`)
        const names = (named ?? '').split(',').map((name: string) => name.trim())
        for (const name of names) if (name !== '') this.add(module, isType ? `type ${name}` : name)
      }
      return '\n'.repeat(whole.split('\n').length - 1)
    })
  }

  lines(): string[] {
    return [...this.#byModule].map(
      ([module, names]) => `import { ${[...names].join(', ')} } from '${module}'`,
    )
  }
}
