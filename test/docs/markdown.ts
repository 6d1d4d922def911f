// Reads a page: its code blocks with their marks, its headings, its links, the paths it names.

import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** A fenced block. Marks are the words behind its language: ```sql session=a fails */
export interface Block {
  readonly lang: string
  readonly marks: readonly string[]
  readonly text: string
  /** The line of the page on which its text begins, counted from 1. */
  readonly line: number
}

export interface Page {
  /** Where it lies, from the root of the repository. */
  readonly path: string
  readonly text: string
  readonly blocks: readonly Block[]
  /** The text with its blocks blanked out; line for line as the page. */
  readonly prose: string
}

/** Every paper of the project. */
export function pagePaths(): string[] {
  const docs = readdirSync(`${ROOT}docs`).filter((name) => name.endsWith('.md'))
  return [
    'README.md',
    'ARCHITECTURE.md',
    'CONTRIBUTING.md',
    'CHANGELOG.md',
    ...docs.map((name) => `docs/${name}`),
  ]
}

export function readPage(path: string): Page {
  const text = readFileSync(`${ROOT}${path}`, 'utf8')
  const blocks: Block[] = []
  const prose: string[] = []
  let open: { lang: string; marks: string[]; line: number; lines: string[] } | undefined
  for (const [index, line] of text.split('\n').entries()) {
    const fence = /^```(.*)$/.exec(line)
    prose.push(open === undefined && fence === null ? line : '')
    if (open !== undefined && fence !== null) {
      const { lines, ...rest } = open
      blocks.push({ ...rest, text: lines.join('\n') })
      open = undefined
    } else if (open !== undefined) {
      open.lines.push(line)
    } else if (fence !== null) {
      const [lang = '', ...marks] = fence[1]!.trim().split(/\s+/)
      open = { lang, marks, line: index + 2, lines: [] }
    }
  }
  if (open !== undefined) throw new Error(`${path}:${open.line}: a block without an end`)
  return { path, text, blocks, prose: prose.join('\n') }
}

/** The value of a mark like `session=a`; empty for one without a value. */
export function mark(block: Block, name: string): string | undefined {
  const found = block.marks.find((each) => each === name || each.startsWith(`${name}=`))
  return found === undefined ? undefined : found.slice(name.length + 1)
}

/** The anchors that a page's headings make, as GitHub makes them. */
export function anchors(page: Page): Set<string> {
  const found = new Set<string>()
  for (const [, title] of page.prose.matchAll(/^#{1,6} (.+)$/gm)) {
    const stem = title!
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-')
    let anchor = stem
    for (let n = 1; found.has(anchor); n++) anchor = `${stem}-${n}`
    found.add(anchor)
  }
  return found
}

/** Where the page's links lead. */
export function links(page: Page): string[] {
  const prose = page.prose.replaceAll(/`[^`]*`/g, '')
  return [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target!)
}

/** Words in backquotes. */
export function words(page: Page): string[] {
  return [...page.prose.matchAll(/`([^`\n]+)`/g)].map(([, word]) => word!)
}
