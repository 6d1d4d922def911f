// The reference of SQL functions, from what stands in their files: the comment above each and its create statement.
// What a comment calls internal is left out.

import { readdirSync, readFileSync } from 'node:fs'

const folder = new URL('../sql/functions/', import.meta.url)
const WIDTH = 116
/** What an item of a comment begins with. */
const LABEL =
  /^(Why[^:]{0,80}|(?:Returns|Transaction|Locks|Errors|Order|Waits|Cost|Price|Source)(?: and [a-z]+)?|options|p_\w+(?:, p_\w+)*):(?: (.*))?$/

/** Every function that people and programs call: its name, its signature and the parts of its comment. */
export function readFunctions() {
  return readdirSync(folder)
    .filter((file) => file.endsWith('.sql'))
    .map((file) => readFunction(file.replace(/\.sql$/, ''), readFileSync(new URL(file, folder), 'utf8')))
    .filter(({ isInternal }) => !isInternal)
}

function readFunction(name, text) {
  const lines = text.split('\n')
  const end = lines.findIndex((line) => !line.startsWith('--'))
  const comment = lines.slice(0, end).map((line) => line.replace(/^-- ?/, ''))
  const [, signature] = /^create or replace function (rowlock\.[\s\S]*?)\s*\n?language /m.exec(text) ?? []
  if (signature === undefined)
    throw new Error(`sql/functions/${name}.sql has no create statement that can be read`)
  const flat = signature.replaceAll(/\s+/g, ' ').replaceAll('( ', '(').replaceAll(' )', ')')
  return {
    name,
    isInternal: /\bInternal\b/.test(comment.join(' ')),
    signature: flat,
    parts: partsOf(comment),
  }
}

/** Sentences, and items that begin with a label: `Returns:`, `p_jobs:`. */
function partsOf(comment) {
  const parts = []
  let open
  for (const line of comment) {
    if (line.trim() === '') {
      open = undefined
      continue
    }
    const [, label, rest] = LABEL.exec(line) ?? []
    if (label !== undefined || open === undefined) {
      open = { label, text: label === undefined ? line : (rest ?? '') }
      parts.push(open)
    } else open.text += ` ${line.trim()}`
  }
  // Why it is so, and what holds it, is for those who change it.
  return parts.filter(({ label }) => !/^(Why|Source)/.test(label ?? ''))
}

/** A function in Markdown. `codes` names the error of each SQLSTATE. */
export function describe({ name, signature, parts }, codes) {
  const [call, returns] = signature.split(/\) returns (?=[a-z])/)
  const coded = (text) =>
    text.replaceAll(/\bRL\d{3}\b/g, (code) => `[${code}](errors.md) \`${codes.get(code)}\``)
  const blocks = [
    `### ${name}`,
    ['```text', ...wrap(`${call})`, '  '), ...wrap(`returns ${returns}`, '  '), '```'].join('\n'),
  ]
  const items = []
  for (const { label, text } of parts) {
    if (label === undefined) blocks.push(wrap(coded(coding(text))).join('\n'))
    else {
      const head = /^[a-z]/.test(label) ? label.replaceAll(/\w+/g, '`$&`') : `**${label}**`
      items.push(wrap(coded(`- ${head}: ${coding(text)}`), '  ').join('\n'))
    }
  }
  if (items.length > 0) blocks.push(items.join('\n'))
  return blocks.join('\n\n')
}

/** JSON and the like is no Markdown: what stands in brackets is set as code. */
function coding(text) {
  let depth = 0
  let code = ''
  let out = ''
  for (const char of text) {
    if (char === '`') return text
    if ('{['.includes(char)) depth++
    if (depth > 0) code += char
    else out += char
    if ('}]'.includes(char) && --depth === 0) {
      out += `\`${code}\``
      code = ''
    }
  }
  return depth === 0 ? out.replaceAll('*', '\\*') : text
}

function wrap(text, indent = '') {
  const lines = ['']
  for (const word of text.split(' ')) {
    const line = lines.at(-1)
    if (line.length + word.length + 1 > WIDTH) lines.push(`${indent}${word}`)
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`
  }
  return lines
}
