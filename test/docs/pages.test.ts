// Every example of the papers compiles under the strictest settings, runs against a real database, and prints what the
// page says it prints.

import ts from 'typescript'
import { describe, expect, test } from 'vitest'
import { createDatabase } from '../support/server.ts'
import { TEMPLATE } from '../support/template.ts'
import { mark, type Page, pagePaths, ROOT, readPage } from './markdown.ts'
import { isRun, nameOf, type Program, programOf } from './program.ts'
import { run, write } from './run.ts'

const pages = pagePaths().map(readPage)
const programs = pages.map(programOf).filter((program) => program !== undefined)

/** Pages that begin before Rowlock is there: they migrate themselves. */
const EMPTY = new Set(['readme', 'start', 'running-in-production'])

describe('the examples', () => {
  test('compile with the settings of this repository', () => {
    const config = ts.parseJsonConfigFileContent(
      ts.readConfigFile(`${ROOT}tsconfig.json`, ts.sys.readFile).config,
      ts.sys,
      ROOT,
    )
    const byFile = new Map(programs.map((program) => [write(program), program]))
    const program = ts.createProgram([...byFile.keys()], config.options)
    const faults = [...byFile.keys()].flatMap((file) => {
      const source = program.getSourceFile(file)!
      const found = [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)]
      return found.map((fault) => place(fault, byFile))
    })
    expect(faults).toEqual([])
  })

  test.concurrent.each(programs.map((program) => [program.page.path, program] as const))(
    'of %s run, and print what the page says',
    async (_, program) => {
      const { url, drop } = await createDatabase(
        `docs_${nameOf(program.page)}`,
        EMPTY.has(nameOf(program.page)) ? {} : { template: TEMPLATE },
      )
      try {
        const outputs = await run(program, url)
        for (const { line, wanted } of expectations(program.page)) {
          const printed = outputs.get(line) ?? ''
          const matches = pattern(wanted).test(normal(printed))
          expect(
            matches,
            `${program.page.path}:${line} printed\n${printed}\nand the page says\n${wanted}`,
          ).toBe(true)
        }
      } finally {
        await drop()
      }
    },
    180_000,
  )

  test('that are shown but not run are few and said to be so', () => {
    const shown = pages.flatMap(({ path, blocks }) =>
      blocks.filter((block) => mark(block, 'no-run') !== undefined).map(({ line }) => `${path}:${line}`),
    )
    expect(shown.length).toBeLessThan(6)
  })

  test('have a language, and marks that mean something', () => {
    const known = /^(scope|no-run|output|waits|fails(=\w{5})?|session=\w+)$/
    const odd = pages.flatMap(({ path, blocks }) =>
      blocks
        .filter(({ lang, marks }) => lang === '' || marks.some((each) => !known.test(each)))
        .map(({ line }) => `${path}:${line}`),
    )
    expect(odd).toEqual([])
  })
})

/** What the page says a block prints. */
function expectations({ path, blocks }: Page): { line: number; wanted: string }[] {
  return blocks.flatMap((block, index) => {
    if (mark(block, 'output') === undefined) return []
    const before = blocks[index - 1]
    if (before === undefined || !isRun(before)) throw new Error(`${path}:${block.line}: output of nothing`)
    return [{ line: before.line, wanted: block.text }]
  })
}

/** Blanks and rules are for the eye. */
function normal(text: string): string {
  return text
    .split('\n')
    .map((line) => line.replaceAll(/\s+/g, ' ').trim())
    .filter((line) => line !== '' && !/^[-+ ]+$/.test(line))
    .join('\n')
}

function pattern(wanted: string): RegExp {
  const parts = normal(wanted)
    .split('…')
    .map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${parts.join('[\\s\\S]*?')}$`)
}

function place(fault: ts.Diagnostic, byFile: ReadonlyMap<string, Program>): string {
  const message = ts.flattenDiagnosticMessageText(fault.messageText, ' ')
  const program = fault.file && byFile.get(fault.file.fileName)
  if (fault.file === undefined) return message
  const { line } = fault.file.getLineAndCharacterOfPosition(fault.start ?? 0)
  if (program === undefined) return `${fault.file.fileName}:${line + 1}: ${message}`
  return `${program.page.path}:${program.pageLine(line + 1)}: ${message}`
}
