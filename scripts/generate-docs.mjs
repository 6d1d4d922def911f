// Writes the parts of the docs that are made from the source: states, errors, limits, tables of options, the reference
// of SQL functions and of the command line, the grants of each role.
// A page has them between `<!-- made: name -->` and `<!-- end -->`. `--check` writes nothing and fails when a page is
// not in step.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { tsImport } from 'tsx/esm/api'
import ts from 'typescript'
import { describeProgram } from './reference-cli.mjs'
import { describe, readFunctions } from './reference-sql.mjs'

const root = new URL('../', import.meta.url)
const load = (path) => tsImport(fileURLToPath(new URL(path, root)), import.meta.url)
const { ERRORS } = await load('src/ground/errors.ts')
const { LIMITS, RETENTION_CLASSES_DAYS } = await load('src/ground/limits.ts')
const { markdownTable, mermaid, PHASES } = await load('src/ground/states.ts')
const { describeMs } = await load('src/ground/duration.ts')
const { grants, RIGHTS } = await load('src/ground/rights.ts')
const { programOf } = await load('src/cli/program.ts')
const { processIo } = await load('src/cli/io.ts')
const { Shell } = await load('src/cli/shell.ts')
const { EXITS } = await load('src/cli/exit.ts')

const cell = (text) => text.replaceAll('|', '\\|').replaceAll(/\s+/g, ' ').trim()
const table = (head, rows) =>
  [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.map(cell).join(' | ')} |`).join('\n')

/** A part by its name; `options of Interface …` are its fields with what their docstrings say. */
function make(what) {
  if (what === 'diagram') return `\`\`\`mermaid\n${mermaid()}\`\`\``
  if (what === 'transitions') return markdownTable().trimEnd()
  if (what === 'phases')
    return table(
      ['table', 'states'],
      Object.entries(PHASES).map(([phase, states]) => [
        `\`${phase}\``,
        states.map((state) => `\`${state}\``).join(', '),
      ]),
    )
  if (what === 'errors')
    return table(
      ['code', 'SQLSTATE', 'when', 'what to do next'],
      Object.entries(ERRORS).map(([code, { sqlstate, when, next }]) => [`\`${code}\``, sqlstate, when, next]),
    )
  if (what === 'limits')
    return table(
      ['limit', 'default', 'least', 'most', 'why'],
      Object.entries(LIMITS).map(([name, limit]) => [
        `\`${name}\``,
        ...[limit.default, limit.min, limit.max].map((value) => amount(value, limit.unit)),
        limit.why,
      ]),
    )
  if (what === 'cli') return describeProgram(programOf(new Shell(processIo(), [])), EXITS)
  if (what === 'sql') return sqlReference()
  const [, role, to] = what.match(/^grants of (\w+) to (\w+)$/) ?? []
  if (role !== undefined) return `\`\`\`sql\n${grants(role, to)}\n\`\`\``
  const [, form, list] = what.match(/^(options|fields|events) of (.+)$/) ?? []
  if (form === undefined) throw new Error(`nothing is made as ${what}`)
  const head = [form.slice(0, -1), 'type', 'what it is']
  return table(
    head,
    list.split(' ').flatMap((name) => fieldsOf(name, form)),
  )
}

/** Each function once, below the narrowest role whose work needs it. */
function sqlReference() {
  const functions = new Map(readFunctions().map((each) => [each.name, each]))
  const codes = new Map(Object.entries(ERRORS).map(([code, { sqlstate }]) => [sqlstate, code]))
  const groups = [
    ['Enqueue', RIGHTS.producer.functions],
    ['Look', RIGHTS.viewer.functions],
    ['Change', RIGHTS.operator.functions],
    ['Work', RIGHTS.worker.functions],
  ]
  const blocks = []
  for (const [title, names] of groups) {
    const own = names.filter((name) => functions.has(name))
    blocks.push(`## ${title}`, ...own.map((name) => describe(functions.get(name), codes)))
    for (const name of own) functions.delete(name)
  }
  return blocks.join('\n\n')
}

function amount(value, unit) {
  if (value === undefined) return ''
  if (unit === 'ms') return describeMs(value)
  const figure = value.toLocaleString('en')
  if (unit === 'bytes') return `${figure} B`
  return unit === 'days' ? `${figure} d` : figure
}

/** The exported interfaces of the source, by name. */
const interfaces = new Map()
for (const name of readdirSync(new URL('src/', root), { recursive: true })) {
  if (!name.endsWith('.ts') || name.endsWith('.generated.ts')) continue
  const text = readFileSync(new URL(`src/${name}`, root), 'utf8')
  const source = ts.createSourceFile(name, text, ts.ScriptTarget.Latest, true)
  for (const node of source.statements)
    if (ts.isInterfaceDeclaration(node)) interfaces.set(node.name.text, node)
}

function fieldsOf(name, form) {
  const found = interfaces.get(name)
  if (found === undefined) throw new Error(`the source has no interface ${name}`)
  return found.members.filter(ts.isPropertySignature).map((member) => {
    const docs = ts.getJSDocCommentsAndTags(member).map((doc) => ts.getTextOfJSDocComment(doc.comment) ?? '')
    const isNeeded = form === 'options' && member.questionToken === undefined
    return [
      `\`${member.name.getText()}\`${isNeeded ? ' (required)' : ''}`,
      `\`${typeText(member)}\``,
      docs.join(' '),
    ]
  })
}

/** A type as a reader needs it: an option may always be undefined, nothing is assigned to, an event has one argument. */
function typeText(member) {
  const text = member.type
    .getText()
    .replaceAll('readonly ', '')
    .replace(/ \| undefined$/, '')
  if (/^[A-Z]$/.test(text)) return 'StandardSchema'
  const days = RETENTION_CLASSES_DAYS.join(' | ')
  if (text.includes('RETENTION_CLASSES_DAYS'))
    return text.replace('(typeof RETENTION_CLASSES_DAYS)[number]', days)
  return text.replace(/^\[(.*)\]$/s, '$1').replace(/^\((\(.*\) => .*)\)$/s, '$1')
}

let stale = false
for (const name of readdirSync(new URL('docs/', root)).filter((file) => file.endsWith('.md'))) {
  const file = new URL(`docs/${name}`, root)
  const before = readFileSync(file, 'utf8')
  const after = before.replaceAll(
    /(<!-- made: (.+?) -->\n)[\s\S]*?(<!-- end -->)/g,
    (_, head, what, foot) => `${head}\n${make(what)}\n\n${foot}`,
  )
  if (after === before) continue
  if (process.argv.includes('--check')) {
    console.error(`docs/${name} is not in step with the source: run node scripts/generate-docs.mjs`)
    stale = true
  } else writeFileSync(file, after)
}
if (stale) process.exit(1)
