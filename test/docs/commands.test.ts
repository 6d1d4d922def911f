// What the papers tell people to type can be typed.

import { describe, expect, test } from 'vitest'
import { callsOf, deadProgram, faultOf } from './commands.ts'
import { type Page, pagePaths, readPage } from './markdown.ts'

const pages = pagePaths().map(readPage)
const pageOf = (text: string): Page => ({
  path: 'docs/a.md',
  text: '',
  prose: '',
  blocks: [{ lang: 'sh', marks: [], text, line: 1 }],
})

describe('the papers', () => {
  test('call only commands, arguments and options that are there', async () => {
    const faults: string[] = []
    for (const page of pages) {
      for (const { args, line } of callsOf(page)) {
        const fault = await faultOf(args)
        if (fault !== undefined) faults.push(`${page.path}:${line}: rowlock ${args.join(' ')}: ${fault}`)
      }
    }
    expect(faults).toEqual([])
  })

  test('call some', () => {
    expect(pages.flatMap(callsOf).length).toBeGreaterThan(2)
  })

  test('have every command in docs/cli.md', () => {
    const text = readPage('docs/cli.md').text
    const paths = pathsOf(deadProgram())
    expect(paths).toContain('rowlock migrate')
    expect(paths.filter((path) => !text.includes(`\n### ${path}\n`))).toEqual([])
  })
})

describe('a call', () => {
  test('is found behind npx, in a pipe, over two lines, and ends at a redirection or a comment', () => {
    const text =
      "npx rowlock migrate --sql > a.sql\necho x | rowlock jobs \\\n  --kind 'a b' # why\nls rowlock"
    expect(callsOf(pageOf(text))).toEqual([
      { args: ['migrate', '--sql'], line: 1 },
      { args: ['jobs', '--kind', 'a b'], line: 2 },
    ])
  })

  test('of a command or with an option that is not there is refused, and help is not', async () => {
    expect(await faultOf(['migrat'])).toMatch(/unknown command/)
    expect(await faultOf(['migrate', '--dry'])).toMatch(/unknown option/)
    expect(await faultOf(['migrate', 'now'])).toMatch(/too many arguments/)
    expect(await faultOf(['--help'])).toBeUndefined()
    expect(await faultOf(['migrate', '--sql', '--schema', 'jobs'])).toBeUndefined()
  })
})

function pathsOf(command: ReturnType<typeof deadProgram>, path = 'rowlock'): string[] {
  if (command.commands.length === 0) return [path]
  return command.commands
    .filter((child) => !(child as unknown as { _hidden?: boolean })._hidden)
    .flatMap((child) => pathsOf(child, `${path} ${child.name()}`))
}
