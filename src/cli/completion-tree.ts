// The tree of commands as completion needs it: for each path its children, its options, and what its words may be.

import type { Command, Option } from 'commander'

/** What can stand in a place: words from a list, the name of a queue, or anything (files, as the shell does it). */
export type Words = readonly string[] | 'queues' | 'anything'

export interface Node {
  /** `jobs`, `bulk resume`; empty for the program itself. */
  readonly path: string
  readonly children: readonly { readonly name: string; readonly says: string }[]
  readonly options: readonly Flag[]
  /** What its own arguments may be. */
  readonly words: Words
}

interface Flag {
  readonly names: readonly string[]
  readonly says: string
  /** Undefined: it takes no value. */
  readonly values: Words | undefined
}

/** Every command, the program first. */
export function nodesOf(program: Command): Node[] {
  const everywhere = flagsOf(program).filter(({ names }) => !names.includes('--version'))
  const visit = (command: Command, path: string): Node[] => {
    const children = command.commands.filter((child) => child.name() !== 'help')
    const own = flagsOf(command).filter(({ names }) => !everywhere.some((flag) => flag.names[0] === names[0]))
    const node: Node = {
      path,
      children: children.map((child) => ({
        name: child.name(),
        says: child.summary() || child.description(),
      })),
      options: [...own, ...everywhere, { names: ['--help'], says: 'help', values: undefined }],
      words: wordsOf(command),
    }
    return [node, ...children.flatMap((child) => visit(child, `${path} ${child.name()}`.trim()))]
  }
  return visit(program, '')
}

const flagsOf = (command: Command): Flag[] => command.options.filter(({ hidden }) => !hidden).map(flagOf)

function flagOf(option: Option): Flag {
  const names = [option.long, option.short].filter((name): name is string => typeof name === 'string')
  const takesValue = option.required || option.optional
  return { names, says: option.description, values: takesValue ? valuesOf(option) : undefined }
}

function valuesOf({ long, argChoices }: Option): Words {
  if (argChoices !== undefined) return argChoices
  return long === '--queue' ? 'queues' : 'anything'
}

function wordsOf(command: Command): Words {
  const [first] = command.registeredArguments
  if (first === undefined) return []
  if (first.argChoices !== undefined) return first.argChoices
  if (first.name() === 'queue') return 'queues'
  return /module|file/.test(first.name()) ? 'anything' : []
}
