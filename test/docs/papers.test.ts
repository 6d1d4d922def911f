// The papers as papers: what they link to and name exists, what is made from the source is in step, nothing is left
// out.

import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import ts from 'typescript'
import { describe, expect, test } from 'vitest'
import { ERRORS } from '../../src/ground/errors.ts'
import { LIMITS } from '../../src/ground/limits.ts'
import { anchors, links, pagePaths, ROOT, readPage, words } from './markdown.ts'

const pages = pagePaths().map(readPage)
const docs = pages.filter(({ path }) => path.startsWith('docs/'))
const page = (path: string) => pages.find((each) => each.path === path)!

describe('the papers', () => {
  test('link only to what is there, headings included', () => {
    const broken: string[] = []
    for (const from of pages) {
      for (const target of links(from)) {
        if (/^https?:/.test(target)) continue
        const [file = '', anchor] = target.split('#')
        const path = file === '' ? from.path : join(dirname(from.path), file)
        const to = pages.find((each) => each.path === path)
        if (!existsSync(ROOT + path)) broken.push(`${from.path}: ${target}`)
        else if (anchor !== undefined && to !== undefined && !anchors(to).has(anchor))
          broken.push(`${from.path}: ${target}`)
      }
    }
    expect(broken).toEqual([])
  })

  test('link only to results of scenarios that are there', () => {
    const scenarios = readdirSync(`${ROOT}bench/scenarios`).map((file) => file.replace('.ts', ''))
    const linked = pages.flatMap((from) =>
      links(from).flatMap((target) => /bench\/RESULTS\.md#(.+)$/.exec(target)?.[1] ?? []),
    )
    // A section of RESULTS.md is called as its scenario is.
    expect([...new Set(linked)].filter((name) => !scenarios.includes(name))).toEqual([])
    expect(new Set(linked).size).toBe(scenarios.length)
  })

  test('name only files and folders that are there', () => {
    const path = /^(src|sql|test|docs|scripts|examples|bench)\/[\w./-]*$/
    const missing = pages.flatMap((from) =>
      words(from)
        .filter((word) => path.test(word) && !word.includes('NNNN') && !existsSync(ROOT + word))
        .map((word) => `${from.path}: ${word}`),
    )
    expect(missing).toEqual([])
  })

  test('name only SQL functions and constraints that are there', () => {
    const sql = ['functions', 'views', 'migrations']
      .flatMap((folder) =>
        readdirSync(`${ROOT}sql/${folder}`).map((file) =>
          readFileSync(`${ROOT}sql/${folder}/${file}`, 'utf8'),
        ),
      )
      .join('\n')
    const named = page('ARCHITECTURE.md')
    const missing = words(named).filter(
      (word) => /^[a-z]+(_[a-z]+)+(\(\))?$/.test(word) && !sql.includes(word.replace('()', '')),
    )
    expect(missing).toEqual([])
  })

  test('of docs/ begin with what one gets from them', () => {
    const without = docs
      .filter(({ text }) => !/^# .+\n\n\*\*You get:\*\* /.test(text))
      .map(({ path }) => path)
    expect(without).toEqual([])
  })

  test('are all in the index, a line each, and the README links to it', () => {
    const index = page('docs/README.md')
    const others = docs.filter((each) => each !== index).map(({ path }) => path.replace('docs/', ''))
    const listed = index.text
      .split('\n')
      .flatMap((line) => /^- \[[^\]]+\]\(([\w-]+\.md)\): \S/.exec(line)?.[1] ?? [])
    expect(listed.toSorted()).toEqual(others.toSorted())
    expect(links(page('README.md'))).toContain('docs/README.md')
  })

  test('name no place of the machine they were written on', () => {
    const found = pages
      .filter(({ text }) => /(?<![\w.])\/(work|tmp|home)\//.test(text))
      .map(({ path }) => path)
    expect(found).toEqual([])
  })

  test('have lines that fit a screen, tables and links aside', () => {
    const long = pages.flatMap(({ path, prose }) =>
      prose
        .split('\n')
        .map((line, index) => ({ line, at: `${path}:${index + 1}` }))
        .filter(({ line }) => line.length > 120 && !line.startsWith('|'))
        .map(({ at }) => at),
    )
    expect(long).toEqual([])
  })

  test('promise exactly once only for effects in the same transaction', () => {
    const loose = pages.flatMap(({ path, text }) =>
      text
        .split(/\n\n|\n(?=[-|] )/)
        .filter((paragraph) => /exactly[- ]once/i.test(paragraph))
        .filter((paragraph) => !/transaction|same database|commit|nothing can promise/i.test(paragraph))
        .map((paragraph) => `${path}: ${paragraph.slice(0, 80)}`),
    )
    expect(loose).toEqual([])
  })
})

describe('what is made from the source', () => {
  test('is in step with it', () => {
    execFileSync(process.execPath, ['scripts/generate-docs.mjs', '--check'], { cwd: ROOT, stdio: 'pipe' })
  })

  test('has every error and every limit', () => {
    const errors = page('docs/errors.md').text
    const limits = page('docs/limits.md').text
    expect(Object.keys(ERRORS).filter((code) => !errors.includes(`| \`${code}\` |`))).toEqual([])
    expect(Object.keys(LIMITS).filter((name) => !limits.includes(`| \`${name}\` |`))).toEqual([])
  })

  test('has every SQL function that is not internal, with all of its arguments', () => {
    const text = page('docs/sql.md').text
    const functions = readdirSync(`${ROOT}sql/functions`).map((file) => ({
      name: file.replace('.sql', ''),
      source: readFileSync(`${ROOT}sql/functions/${file}`, 'utf8'),
    }))
    const called = functions.filter(
      ({ source }) => !/\bInternal\b/.test(source.split('create or replace')[0]!),
    )
    expect(called.length).toBeGreaterThan(30)
    const missing = called.filter(({ name, source }) => {
      const [, args] = /create or replace function rowlock\.\w+\(([\s\S]*?)\)\s+returns/.exec(source)!
      const flat = args!.replaceAll(/\s+/g, ' ').trim()
      const [entry = ''] = text.split(`\n### ${name}\n`)[1]?.split('\n### ') ?? []
      return !entry.replaceAll(/\s+/g, ' ').includes(`rowlock.${name}(${flat})`)
    })
    expect(missing.map(({ name }) => name)).toEqual([])
  })

  test('has every warning and error of a worker’s log in docs/operating.md', () => {
    const said = readdirSync(`${ROOT}src/worker`).flatMap((file) => {
      const source = readFileSync(`${ROOT}src/worker/${file}`, 'utf8')
      const calls = source.matchAll(/(?:\.(?:warn|error)\(|#complain\()(?:[^'`;]*?,\s*)?'([^']+)'/g)
      return [...calls].map(([, message]) => message!)
    })
    expect(said.length).toBeGreaterThan(15)
    const { text } = page('docs/operating.md')
    expect(said.filter((message) => !text.includes(`| ${message} |`))).toEqual([])
  })

  test('leaves out no option that enqueue takes in SQL', () => {
    const fault = readFileSync(`${ROOT}sql/functions/job_fault.sql`, 'utf8')
    const [, list] = /v_known constant text\[\] := array\[([^\]]*)\]/.exec(fault)!
    const known = [...list!.matchAll(/'(\w+)'/g)].map(([, name]) => name!)
    expect(known.length).toBeGreaterThan(10)
    const { blocks } = page('docs/jobs-and-handlers.md')
    const sql = blocks.filter(({ lang }) => lang === 'sql').map(({ text }) => text)
    expect(known.filter((name) => !sql.join('\n').includes(`"${name}"`))).toEqual([])
  })

  test('has every field of every interface that users fill in', () => {
    const wanted = [
      ...['JobOptions', 'JobDefaults', 'RetryOptions', 'EnqueueOptions', 'HandlerOptions', 'QueueSettings'],
      ...[
        'WorkerOptions',
        'QueueOptions',
        'DatabaseOptions',
        'RunJobOptions',
        'DrainOptions',
        'EmbeddedOptions',
      ],
      ...['HandlerContext', 'RunningJob', 'WorkerEvents', 'WorkerStatus'],
    ]
    const text = docs.map((each) => each.text).join('\n')
    const fields = fieldsOf(wanted)
    expect(fields.length).toBeGreaterThan(60)
    const undocumented = fields.filter((field) => !text.includes(`| \`${field}\``))
    expect(undocumented).toEqual([])
  })
})

/** The fields of these interfaces, wherever in the source they are. */
function fieldsOf(names: readonly string[]): string[] {
  const files = readdirSync(`${ROOT}src`, { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.ts'),
  )
  return files.flatMap((file) => {
    const text = readFileSync(`${ROOT}src/${file}`, 'utf8')
    if (!names.some((name) => text.includes(`interface ${name}`))) return []
    return ts
      .createSourceFile(file, text, ts.ScriptTarget.Latest)
      .statements.filter(ts.isInterfaceDeclaration)
      .filter(({ name }) => names.includes(name.text))
      .flatMap(({ members }) => members.filter(ts.isPropertySignature))
      .map(({ name }) => (name as ts.Identifier).text)
  })
}
