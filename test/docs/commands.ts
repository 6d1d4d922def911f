// Reads the `rowlock …` calls out of the papers' sh blocks, and tries each on the command line's own program without
// running it: the command, its arguments and its options must be there.

import { PassThrough } from 'node:stream'
import type { Command } from 'commander'
import { CommanderError } from 'commander'
import { programOf } from '../../src/cli/program.ts'
import { Shell } from '../../src/cli/shell.ts'
import type { Page } from './markdown.ts'

/** One call, and the line of the page it stands on. */
export interface Call {
  readonly args: readonly string[]
  readonly line: number
}

/** Words, in quotes or not; a pipe and the like is a word of its own. */
const WORD = /'[^']*'|"(?:[^"\\]|\\.)*"|[|;&<>]+|(?:\\.|[^\s'"|;&<>]|'[^']*'|"[^"]*")+/g

/** Every call of `rowlock` in a page's sh blocks. A comment ends a line, a backslash joins it to the next. */
export function callsOf({ blocks }: Page): Call[] {
  return blocks
    .filter(({ lang }) => lang === 'sh')
    .flatMap(({ text, line }) => {
      const lines = text.split('\n')
      return lines.flatMap((each, index) => {
        if (index > 0 && lines[index - 1]!.endsWith('\\')) return []
        let whole = each
        for (let next = index + 1; whole.endsWith('\\'); next++)
          whole = `${whole.slice(0, -1)} ${lines[next] ?? ''}`
        return commandsIn(whole).map((args) => ({ args, line: line + index }))
      })
    })
}

function commandsIn(line: string): string[][] {
  const commands: string[][] = [[]]
  for (const [word] of line.replace(/(^|\s)#.*$/, '').matchAll(WORD)) {
    if (/^[|;&]+$/.test(word)) commands.push([])
    else commands.at(-1)!.push(word)
  }
  return commands.flatMap((words) => {
    const start = words.findIndex((word) => !/^(npx|\w+=.*)$/.test(word))
    if (words[start] !== 'rowlock') return []
    const args = words.slice(start + 1)
    const redirected = args.findIndex((word) => /^[<>]+$/.test(word))
    return [(redirected < 0 ? args : args.slice(0, redirected)).map(unquoted)]
  })
}

function unquoted(word: string): string {
  return word.replaceAll(/'([^']*)'|"((?:[^"\\]|\\.)*)"/g, (_, single, double) => single ?? double)
}

/** The program, with nothing behind its commands. */
export function deadProgram(): Command {
  const stream = new PassThrough()
  stream.resume()
  const io = {
    stdin: stream,
    stdout: stream,
    stderr: stream,
    env: { DATABASE_URL: 'postgres://app@db/shop' },
    user: 'ada@desk',
    onSignal: () => () => {},
    exit: () => {},
    now: () => 0,
  }
  const program = programOf(new Shell(io as never, []))
  disarm(program)
  return program
}

function disarm(command: Command): void {
  if (command.commands.length === 0) command.action(() => {})
  for (const child of command.commands) disarm(child)
}

/** What is wrong with a call, or undefined. */
export async function faultOf(args: readonly string[]): Promise<string | undefined> {
  try {
    await deadProgram().parseAsync(args, { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError) || error.exitCode !== 0) return (error as Error).message
  }
  return undefined
}
