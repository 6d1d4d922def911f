// Lines of a file as jobs: NDJSON, one object a line, or CSV, one record. A line that is no job is said, and the next
// one is read. Sends nothing.

import { CsvError } from 'csv-parse'
import { parse } from 'csv-parse/sync'
import type { ReadLines } from '../engine/import.ts'
import { LIMITS } from '../ground/limits.ts'
import { nearest } from '../ground/nearest.ts'
import { toWire, type Wire } from '../ground/request.ts'
import {
  FIELDS,
  type Fields,
  fieldNamed,
  fieldOfText,
  fieldsOf,
  inFields,
  parseJson,
  requestOf,
  roundedNumber,
  withDefaults,
} from './job-fields.ts'
import type { Line } from './lines.ts'

export type Format = 'ndjson' | 'csv'

/** What was read of a file: a job, a blank line, or what is wrong with it. */
export interface JobLine extends ReadLines {
  /** Where it begins: a record of CSV may have several lines. */
  readonly begins: number
  /** Bytes of the file up to its end. */
  readonly bytes: number
  readonly fault?: string
  /** Nothing behind it can be read: the header is wrong, or a quote never closes. */
  readonly isLast?: boolean
}

export interface JobFormat {
  readonly format: Format
  /** Between the cells of CSV. */
  readonly delimiter: string
  /** Fields that a line need not have. */
  readonly defaults: Fields
}

/** Read jobs. */
export function readJobs(lines: AsyncIterable<Line>, format: JobFormat): AsyncGenerator<JobLine, void> {
  return format.format === 'csv' ? readCsv(lines, format) : readNdjson(lines, format)
}

const of = ({ number, digest, bytes }: Line, begins = number) => ({ begins, line: number, digest, bytes })

async function* readNdjson(
  lines: AsyncIterable<Line>,
  { defaults }: JobFormat,
): AsyncGenerator<JobLine, void> {
  for await (const line of lines) {
    if (line.fault === undefined && line.text.trim() === '') yield { ...of(line), wire: undefined }
    else yield { ...of(line), ...attempt(() => wireOf(line, defaults)) }
  }
}

function wireOf({ text, isEnded, number, fault }: Line, defaults: Fields): Wire {
  if (fault !== undefined) throw new Error(fault)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    const said = (error as Error).message
    if (number === 1 && /^\s*\[/.test(text))
      throw new Error(`begins an array: give one object a line, as \`jq -c '.[]'\` writes them`)
    throw new Error(isEnded ? `is no JSON: ${said}` : `is cut off, and no line end follows: ${said}`)
  }
  if (number === 1 && Array.isArray(value))
    throw new Error(`is an array: give one object a line, as \`jq -c '.[]'\` writes them`)
  const number16 = roundedNumber(text)
  if (number16 !== undefined)
    throw new Error(`holds the number ${number16}, which JavaScript would round: write it as a string`)
  return write(fieldsOf(value), defaults)
}

function write(fields: Fields, defaults: Fields): Wire {
  // A definition without a schema answers at once.
  return toWire(requestOf(withDefaults(fields, defaults))) as Wire
}

function attempt(make: () => Wire): { wire: Wire | undefined; fault?: string } {
  try {
    return { wire: make() }
  } catch (error) {
    return { wire: undefined, fault: inFields((error as Error).message).replace(/\.$/, '') }
  }
}

/** A column: a field of the job, or of its input. */
interface Column {
  readonly name: string
  readonly field?: string
  readonly key?: string
  readonly isJson: boolean
}

async function* readCsv(lines: AsyncIterable<Line>, format: JobFormat): AsyncGenerator<JobLine, void> {
  let columns: readonly Column[] | undefined
  for await (const record of records(lines)) {
    const { lines: own, fault } = record
    const begins = own[0]!.number
    const at = of(own.at(-1)!, begins)
    const text = own.map((line) => line.text).join('\n')
    if (fault === undefined && text.trim() === '') {
      yield { ...at, wire: undefined }
    } else if (columns === undefined) {
      try {
        if (fault !== undefined) throw new Error(fault)
        columns = columnsOf(cells(text, format.delimiter), format)
        yield { ...at, wire: undefined }
      } catch (error) {
        yield { ...at, wire: undefined, fault: (error as Error).message, isLast: true }
        return
      }
    } else {
      const known = columns
      const make = () => {
        if (fault !== undefined) throw new Error(fault)
        return write(fieldsOfRecord(cells(text, format.delimiter), known), format.defaults)
      }
      const job = { ...at, ...attempt(make) }
      // Where quotes are wrong nobody knows which of them begin a cell: what follows would be said in vain.
      const isLast = job.fault !== undefined && (record.isOpen === true || QUOTES.includes(job.fault))
      yield { ...job, ...(isLast && { isLast }) }
      if (isLast) return
    }
  }
}

interface Record {
  readonly lines: readonly Line[]
  readonly fault?: string
  readonly isOpen?: boolean
}

/** A record ends with the line at whose end no quote is open: the number of quotes so far is even. */
async function* records(lines: AsyncIterable<Line>): AsyncGenerator<Record, void> {
  let open: Line[] = []
  let isOpen = false
  let bytes = 0
  for await (const line of lines) {
    open.push(line)
    bytes += line.text.length
    if (line.fault !== undefined) {
      yield { lines: open, fault: open.length > 1 ? `${line.fault} (line ${line.number})` : line.fault }
    } else {
      for (let at = line.text.indexOf('"'); at >= 0; at = line.text.indexOf('"', at + 1)) isOpen = !isOpen
      if (isOpen && bytes <= LIMITS.importLineBytes.max) continue
      yield isOpen ? { lines: open, fault: UNCLOSED, isOpen } : { lines: open }
      if (isOpen) return
    }
    open = []
    isOpen = false
    bytes = 0
  }
  if (open.length > 0) yield { lines: open, fault: UNCLOSED, isOpen }
}

const QUOTES: readonly string[] = [
  'has a quote inside a cell that does not begin with one: quote the whole cell and double the quote',
  'has text behind the closing quote of a cell: double quotes that belong to the text',
]
const UNCLOSED = 'opens a quote that never closes'

function cells(text: string, delimiter: string): string[] {
  try {
    return (
      (parse(text, { delimiter, relax_column_count: true, record_delimiter: '\n' }) as string[][])[0] ?? []
    )
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
    throw new Error(
      error.code === 'INVALID_OPENING_QUOTE'
        ? QUOTES[0]
        : error.code === 'CSV_INVALID_CLOSING_QUOTE'
          ? QUOTES[1]
          : error.message,
    )
  }
}

function columnsOf(names: readonly string[], { delimiter, defaults }: JobFormat): readonly Column[] {
  const columns = names.map((name) => columnOf(name.trim(), names.length, delimiter))
  const seen = new Set<string>()
  for (const { name, field, key } of columns) {
    const what = field ?? `input.${key}`
    if (seen.has(what)) throw new Error(`the header names ${name} twice`)
    seen.add(what)
  }
  if (!seen.has('kind') && defaults.kind === undefined)
    throw new Error('the header has no column kind: add one, or give --kind for all lines')
  if (seen.has('input') && columns.some(({ key }) => key !== undefined)) {
    const other = columns.find(({ key }) => key !== undefined)!.name
    throw new Error(`the column input is the whole input, so ${other} can be no part of it`)
  }
  return columns
}

function columnOf(name: string, among: number, delimiter: string): Column {
  if (name === '') throw new Error('the header has a column without a name')
  const field = fieldNamed(name)
  if (field !== undefined) return { name, field, isJson: false }
  const isJson = name.endsWith(':json')
  const bare = isJson ? name.slice(0, -':json'.length) : name
  if (bare === 'input' && isJson) return { name, field: 'input', isJson: false }
  if (bare.startsWith('input.') && bare.length > 'input.'.length)
    return { name, key: bare.slice('input.'.length), isJson }
  if (among === 1 && delimiter === ',' && /[;\t|]/.test(name))
    throw new Error(`the header has no comma: give --delimiter '${/[;\t|]/.exec(name)![0]}'`)
  const meant = nearest(bare, FIELDS)
  if (meant !== undefined)
    throw new Error(
      `the header has a column ${name}; did you mean ${meant}? If it is input, call it input.${name}`,
    )
  return { name, key: bare, isJson }
}

function fieldsOfRecord(found: readonly string[], columns: readonly Column[]): Fields {
  if (found.length !== columns.length)
    throw new Error(`has ${found.length} cells; the header has ${columns.length}`)
  const fields: globalThis.Record<string, unknown> = {}
  const input: [string, unknown][] = []
  for (const [n, { name, field, key, isJson }] of columns.entries()) {
    const cell = found[n]!
    if (field !== undefined) {
      if (cell !== '') fields[field] = fieldOfText(field, cell)
    } else if (isJson) {
      if (cell !== '') input.push([key!, parseJson(name, cell)])
    } else {
      input.push([key!, cell])
    }
  }
  if (columns.some(({ key }) => key !== undefined)) fields.input = Object.fromEntries(input)
  else if (!columns.some(({ field }) => field === 'input')) fields.input = {}
  return fields
}
