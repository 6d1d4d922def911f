// The tools that test the papers, tested: a tool that lets everything pass would prove nothing.

import { describe, expect, test } from 'vitest'
import { createDatabase } from '../support/server.ts'
import type { Block, Page } from './markdown.ts'
import { anchors, links } from './markdown.ts'
import { programOf } from './program.ts'
import { run } from './run.ts'
import { statementsOf } from './statements.ts'

function pageOf(...blocks: (Pick<Block, 'lang' | 'text'> & { marks?: string[] })[]): Page {
  const placed = blocks.map((block, index) => ({ marks: [], ...block, line: index + 1 }))
  return { path: 'docs/tools.md', text: '', prose: '', blocks: placed }
}

async function ran(page: Page): Promise<Map<number, string>> {
  const { url, drop } = await createDatabase('docs_tools')
  try {
    return await run(programOf(page)!, url)
  } finally {
    await drop()
  }
}

describe('a script', () => {
  test('is cut at semicolons that end a statement, and at no others', () => {
    const body = "create function f() returns void language sql as $x$ select 1; select ';' $x$"
    expect(statementsOf(`${body}; -- a ; b\nselect ';', "a;b" /* ; */;\n`)).toHaveLength(2)
    expect(statementsOf(`${body}; select 1`)).toEqual([body, 'select 1'])
  })
})

describe('a page', () => {
  test('is one program: blocks in order, the same import twice, the reader’s own files left out', () => {
    const { text } = programOf(
      pageOf(
        { lang: 'ts', text: "import { a } from 'x'\nimport { b } from './b.ts'\nconst one = a" },
        { lang: 'ts', text: "import { a, type C } from 'x'\nconst two = one" },
      ),
    )!
    expect(text.match(/from 'x'/g)).toHaveLength(1)
    expect(text).not.toContain('./b.ts')
    expect(text.indexOf('const one')).toBeLessThan(text.indexOf('const two'))
  })

  test('knows which line of it a line of its program came from', () => {
    const program = programOf(pageOf({ lang: 'ts', text: 'const one = 1\nconst two = 2' }))!
    const line = program.text.split('\n').indexOf('const two = 2') + 1
    expect(program.pageLine(line)).toBe(2)
  })

  test('whose SQL was to fail and did not is refused', async () => {
    await expect(ran(pageOf({ lang: 'sql', text: 'select 1', marks: ['fails'] }))).rejects.toThrow(
      'must fail',
    )
  })

  test('whose SQL failed with another code is refused', async () => {
    const page = pageOf({ lang: 'sql', text: 'select 1 / 0', marks: ['fails=42P01'] })
    await expect(ran(page)).rejects.toThrow('22012')
  })

  test('whose SQL was to wait and did not is refused', async () => {
    await expect(ran(pageOf({ lang: 'sql', text: 'select 1', marks: ['waits'] }))).rejects.toThrow(
      'must wait',
    )
  })

  test('that throws is refused, with the block in which it did', async () => {
    const page = pageOf({ lang: 'ts', text: 'export {}' }, { lang: 'ts', text: "throw new Error('no')" })
    await expect(ran(page)).rejects.toThrow('docs/tools.md:2')
  })

  test('tells what each block printed', async () => {
    const outputs = await ran(
      pageOf(
        { lang: 'ts', text: "console.log('one')" },
        { lang: 'sql', text: 'select 1 as n, null as nothing' },
      ),
    )
    expect(outputs.get(1)).toBe('one\n')
    expect(outputs.get(2)).toBe(' n | nothing\n 1 | \n(1 row)\n')
  })
})

describe('a link', () => {
  test('is found in prose, and its anchor as GitHub makes it', () => {
    const page: Page = {
      path: 'a.md',
      text: '',
      blocks: [],
      prose: '# What waits, and since when?\n[x](b.md#c) `[y](z)`',
    }
    expect([...anchors(page)]).toEqual(['what-waits-and-since-when'])
    expect(links(page)).toEqual(['b.md#c'])
  })
})
