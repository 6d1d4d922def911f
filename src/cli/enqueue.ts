// `rowlock enqueue`: one job from the command line. A file of them is `enqueue-file.ts`.

import { Command } from 'commander'
import { isRowlockError, RowlockError } from '../ground/errors.ts'
import { LIMITS } from '../ground/limits.ts'
import type { FileOptions } from './enqueue-file.ts'
import { type Exit, UsageError } from './exit.ts'
import { type Fields, fieldOfText, inFields, requestOf } from './job-fields.ts'
import type { Shell } from './shell.ts'

/** Options that are fields of a job: the flag, what it takes, what it is. */
const FLAGS: Readonly<Record<string, readonly [flags: string, what: string]>> = {
  queue: ['--queue <name>', 'default: default'],
  priority: ['--priority <n>', '-10 to 10, higher first'],
  delay: ['--delay <length>', 'due after this time: 30s, 10m, 2h'],
  available_at: ['--available-at <instant>', 'due from then on: 2030-01-31T12:00:00Z'],
  expires_in: ['--expires-in <length>', 'cancelled when it has not started within this time'],
  expires_at: ['--expires-at <instant>', 'cancelled when it has not started by then'],
  tenant_id: ['--tenant-id <id>', 'whose job it is'],
  dedupe_key: ['--dedupe-key <key>', 'at most one live job of the queue has it'],
  idempotency_key: ['--idempotency-key <key>', "for the handler's side effects"],
  max_attempts: ['--max-attempts <n>', 'failures after which it is a dead letter'],
  backoff: ['--backoff <json>', 'between them: {"type": "fixed", "delay_ms": 5000}'],
  timeout: ['--timeout <length>', 'how long one attempt may take'],
  metadata: ['--metadata <json>', 'about the job, not its input'],
}

/** What commander makes of the options, each text as it was typed. */
type Typed = Readonly<Record<string, string | undefined>>

export function enqueueCommand(shell: Shell): Command {
  const command = new Command('enqueue')
    .summary('put a job in, or a file of them')
    .description(
      'Put a job in, or, with --file, a file of them: all or none. Answers its id; ' +
        'a job that is there already, by its dedupe key, is no error.',
    )
    .argument('[kind]', 'what the job is called')
    .argument('[input]', "JSON; '-' reads it from stdin (default: {})")
  for (const [flags, what] of Object.values(FLAGS)) command.option(flags, what)
  return command
    .option(
      '--file <path>',
      "jobs from a file, '-' for stdin; the options above hold where a line says nothing",
    )
    .option('--kind <name>', 'with --file: the kind of lines without one')
    .option('--format <format>', "with --file: ndjson or csv; default: by the file's name, ndjson for stdin")
    .option('--delimiter <sign>', 'with --file: between the cells of CSV', ',')
    .option('--key <key>', 'with --file: in steps that stay; the same key again goes on where it stopped')
    .addHelpText('after', HELP)
    .action(
      shell.run((kind: string | undefined, input: string | undefined, options: Typed) =>
        options.file === undefined
          ? enqueueOne(shell, kind, input, options)
          : enqueueFrom(shell, kind, input, options),
      ),
    )
}

const HELP = `
Examples:
  rowlock enqueue send-email '{"to": "ada@example.org"}' --delay 10m
  jq -n '{to: env.TO}' | rowlock enqueue send-email -
  rowlock enqueue --file jobs.ndjson
  rowlock enqueue --file people.csv --kind send-email --key people-2030-01

NDJSON: one object a line, as rowlock.enqueue_many takes it:
  {"kind": "send-email", "input": {"to": "…"}, "delay": "10 minutes"}
Names may be written as in SQL (dedupe_key) or as in TypeScript (dedupeKey); unknown ones are refused.

CSV: a header, then a job a line. A column is a field of the job (kind, queue, dedupe_key, …), \`input\` (the whole
input, as JSON), or a field of the input by its name (\`to\`, or \`input.to\`). Cells are text; \`amount:json\` reads a
cell as JSON. An empty cell of a job's field is none.

Without --key all lines are one transaction, and one wrong line refuses all of them. With it, each step of at most
1,000 jobs commits: run it again with the same key, file and options until it is done, and each line is enqueued once.
A key is forgotten 90 days after its import ended, or after its last step: then the same file is enqueued anew.`

async function enqueueOne(
  shell: Shell,
  kind: string | undefined,
  input: string | undefined,
  options: Typed,
): Promise<void> {
  if (kind === '-')
    throw new UsageError(`jobs from stdin? Did you mean ${shell.againWithout('-', '--file', '-')}?`)
  if (kind === undefined)
    throw new UsageError('which kind of job? rowlock enqueue <kind> [input], or --file <path>')
  for (const name of ['kind', 'format', 'key']) {
    if (options[name] !== undefined) throw new UsageError(`--${name} goes with --file`)
  }
  try {
    const text = input === '-' ? await readInput(shell) : (input ?? '{}')
    const {
      definition,
      input: value,
      options: more,
    } = requestOf({
      ...fieldsTyped(options),
      kind,
      input: inputOf(text),
    })
    const job = await (await shell.client()).enqueue(definition, value, more)
    if (shell.isJson) return await shell.json(job)
    const { queue = 'default' } = options
    shell.say(
      job.created
        ? `enqueued: ${kind} in queue ${queue}`
        : job.reason === 'queue_full'
          ? `dropped: queue ${queue} is full`
          : `nothing enqueued: this live job has the dedupe key already`,
    )
    if (job.reason === undefined) await shell.print(job.id)
  } catch (error) {
    throw inFlags(error)
  }
}

/** The job's fields among the options, numbers and JSON read. Errors: INVALID_OPTION. */
function fieldsTyped(options: Typed): Fields {
  const given = Object.entries(FLAGS).flatMap(([field, [flags]]) => {
    const text = options[new Command().option(flags).options[0]!.attributeName()]
    return text === undefined ? [] : [[field, fieldOfText(field, text)] as const]
  })
  return Object.fromEntries(given)
}

function inputOf(text: string): unknown {
  try {
    return fieldOfText('input', text)
  } catch (error) {
    if (!isRowlockError(error) || !/is no JSON/.test(error.message)) throw error
    throw new UsageError(
      `${error.message}\n  In a shell: rowlock enqueue KIND '{"name": "value"}', or - and JSON on stdin.`,
    )
  }
}

async function readInput(shell: Shell): Promise<string> {
  const pieces: Buffer[] = []
  let bytes = 0
  for await (const piece of shell.io.stdin) {
    pieces.push(Buffer.from(piece))
    bytes += piece.length
    if (bytes > LIMITS.importLineBytes.max) throw new UsageError('the input on stdin is too large')
  }
  return Buffer.concat(pieces)
    .toString('utf8')
    .replace(/^\uFEFF/, '')
}

async function enqueueFrom(
  shell: Shell,
  kind: string | undefined,
  input: string | undefined,
  options: Typed,
): Promise<Exit> {
  if (input !== undefined || (kind !== undefined && options.kind !== undefined))
    throw new UsageError(
      'with --file the inputs come from the file; --kind names the kind of lines without one',
    )
  for (const name of ['dedupe', 'idempotency'] as const) {
    if (options[`${name}Key`] !== undefined)
      throw new UsageError(
        `--${name}-key cannot be the same for all lines: give each line its own ${name}_key`,
      )
  }
  try {
    const named = options.kind ?? kind
    const file: FileOptions = {
      path: options.file!,
      format: options.format,
      delimiter: options.delimiter!,
      key: options.key,
      defaults: { ...fieldsTyped(options), ...(named !== undefined && { kind: named }) },
    }
    const { enqueueFile } = await import('./enqueue-file.ts')
    return await enqueueFile(shell, file)
  } catch (error) {
    throw inFlags(error)
  }
}

/** The error as people typed what is wrong. */
function inFlags(error: unknown): unknown {
  if (!isRowlockError(error, 'INVALID_OPTION')) return error
  const message = inFields(error.message, (field) => FLAGS[field]?.[0].split(' ')[0] ?? field)
  return new RowlockError(error.code, message, { cause: error })
}
