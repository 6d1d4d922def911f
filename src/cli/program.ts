// The command line as a function: words in, an exit code out. Says what went wrong where nobody else has.

import { type Argument, Command, CommanderError, type Option } from 'commander'
import { RELEASE } from '../engine/release.ts'
import { suggest } from '../ground/nearest.ts'
import { COMMANDS } from './commands.ts'
import { EXITS, exitCodes } from './exit.ts'
import type { Io } from './io.ts'
import { hasColours, painter } from './paint.ts'
import { type GlobalOptions, Shell } from './shell.ts'
import { wrap } from './visible.ts'

/** Run one call; answers its exit code. `onShell` is told of the shell before anything runs. */
export async function main(
  args: readonly string[],
  io: Io,
  onShell?: (shell: Shell) => void,
): Promise<number> {
  const shell = new Shell(io, args)
  onShell?.(shell)
  const program = programOf(shell)
  try {
    await program.parseAsync(args, { from: 'user' })
    return shell.code ?? EXITS[shell.exit].code
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXITS.done.code : EXITS.usage.code
    const { failureOf } = await import('./failure.ts')
    const { exit, says } = failureOf(error, {
      command: shell.command,
      url: program.opts().url ?? io.env.DATABASE_URL,
      schema: shell.schema,
    })
    shell.say(`${shell.talkPaint('red', 'rowlock:')} ${says}`)
    return EXITS[exit].code
  } finally {
    await shell.close()
  }
}

const GLOBALS = '\nEvery command takes --url, --schema, --json and --no-color: see rowlock --help.'

/** The tree of all commands. Completion and docs are made from it. */
export function programOf(shell: Shell): Command {
  const { io } = shell
  const helpWidth = Math.min(shell.width, 120)
  const program = new Command('rowlock')
    .description('A durable job queue in the PostgreSQL you already have.')
    .version(RELEASE, '-V, --version', 'print the release')
    .option('--url <url>', 'the database (default: DATABASE_URL)')
    .option('--schema <name>', "Rowlock's schema (default: ROWLOCK_SCHEMA, or rowlock)")
    .option(
      '--json',
      'answer programs: one JSON object a line, as the TypeScript API has it, dates in ISO form',
    )
    .option('--no-color', 'no colours; NO_COLOR does the same, FORCE_COLOR the opposite')
    .showSuggestionAfterError()
    .showHelpAfterError('(see: rowlock --help)')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void io.stdout.write(fitted(text, helpWidth)),
      writeErr: (text) => void io.stderr.write(text),
      getOutHelpWidth: () => helpWidth,
      getErrHelpWidth: () => helpWidth,
      getOutHasColors: () => hasColours(io.stdout, io.env),
      getErrHasColors: () => hasColours(io.stderr, io.env),
    })
  saysWrong(program)
    .configureHelp({
      optionDescription: describe,
      subcommandTerm: (command) =>
        [
          command.name(),
          ...command.registeredArguments.filter(({ description }) => description).map(termOf),
        ].join(' '),
      styleTitle: (title) => painter(true)('bold', title),
    })
    .helpCommand(false)
    .addHelpText('after', `\nStdout carries data, stderr talk.\n\n${exitCodes(helpWidth)}`)
  program.hook('preAction', (_, called) => {
    shell.configure(program.opts<GlobalOptions>())
    shell.command = pathOf(called).split(' ')[1]
  })
  for (const { heading, commands } of COMMANDS) {
    for (const make of commands) {
      const command = make(shell).helpGroup(heading)
      program.addCommand(command)
      inherit(command, program)
      command.addHelpText('after', GLOBALS)
    }
  }
  const help = helpCommand(program)
  program.addCommand(help)
  inherit(help, program)
  return program
}

/** What an option is, and its default; the words it takes stand in the description where they help. */
function describe({ description, defaultValue, defaultValueDescription }: Option): string {
  const isShown = typeof defaultValue === 'number' || typeof defaultValue === 'string'
  const value = defaultValueDescription ?? (isShown ? String(defaultValue) : undefined)
  return value === undefined ? description : `${description} (default: ${value})`
}

/** `rowlock help bulk resume`; a word that is no command is refused. */
function helpCommand(program: Command): Command {
  return new Command('help')
    .description('Show the help of a command.')
    .summary('show the help of a command')
    .argument('[command...]', 'its name')
    .helpGroup('Shell:')
    .addHelpText('after', '\nExamples:\n  rowlock help jobs\n  rowlock help bulk resume')
    .action((words: readonly string[]) => {
      let at = program
      for (const word of words) {
        const found = at.commands.find((child) => child.name() === word)
        if (found === undefined)
          at.error(`error: ${pathOf(at)} has no command '${word}'; ${suggest(word, namesOf(at))}`)
        else at = found
      }
      at.outputHelp()
    })
}

const namesOf = (command: Command): string[] => command.commands.map((child) => child.name())

/** Paragraphs set anew at the width; what is indented stands as it is: options, and examples that can be typed. */
function fitted(text: string, width: number): string {
  const lines: string[] = []
  let paragraph: string[] = []
  const end = () => {
    if (paragraph.length > 0) lines.push(...wrap(paragraph.join(' '), width))
    paragraph = []
  }
  for (const line of text.split('\n')) {
    if (line !== '' && !/^\s/.test(line)) paragraph.push(line)
    else {
      end()
      lines.push(line)
    }
  }
  end()
  return lines.join('\n')
}

function termOf(argument: Argument): string {
  const word = `${argument.name()}${argument.variadic ? '...' : ''}`
  return argument.required ? `<${word}>` : `[${word}]`
}

/** Each command ends by throwing, suggests and prints as the program does. */
function inherit(command: Command, parent: Command): void {
  command.copyInheritedSettings(parent).showHelpAfterError(`(see: ${pathOf(command)} --help)`)
  saysWrong(command)
  for (const child of command.commands) inherit(child, command)
}

/** What is wrong in the words of a call; of an option that is a part of others, those are proposed. */
function saysWrong(command: Command): Command {
  return command.configureOutput({
    ...command.configureOutput(),
    outputError: (text, write) => {
      const said = text.replace(/^error:/, 'rowlock:')
      const part = /unknown option '--([a-z][a-z-]*)/.exec(said)?.[1]
      const whole = command.options
        .map(({ long }) => long ?? '')
        .filter((long) => part !== undefined && `${long}-`.includes(`-${part}-`))
      if (whole.length === 0) return write(said)
      const meant = whole.length === 1 ? whole[0] : `one of ${whole.join(', ')}`
      write(`${said.split('\n')[0]}\n(Did you mean ${meant}?)\n`)
    },
  })
}

function pathOf(command: Command): string {
  return command.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name()
}
