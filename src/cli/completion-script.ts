// The scripts of `rowlock completion`: what stands in the tree of commands, written down for each shell. They start no
// process but to ask for the names of queues.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the variables are the shells'

import type { Node, Words } from './completion-tree.ts'

export const SHELLS = ['bash', 'zsh', 'fish'] as const
export type CompletedShell = (typeof SHELLS)[number]

export function script(shell: CompletedShell, nodes: readonly Node[]): string {
  return { bash, zsh, fish }[shell](nodes)
}

const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

/** Flags by what their values are; a flag means the same for every command. */
function valuesByFlag(nodes: readonly Node[]): [string[], Words][] {
  const groups = new Map<string, [string[], Words]>()
  for (const { names, values } of nodes.flatMap(({ options }) => options)) {
    if (values === undefined) continue
    const key = typeof values === 'string' ? values : values.join(' ')
    const group: [string[], Words] = groups.get(key) ?? [[], values]
    groups.set(key, [[...new Set([...group[0], ...names])], values])
  }
  return [...groups.values()]
}

/** Lines that bash and zsh share: walk the words to find the command, its options and what may come. */
function walk(nodes: readonly Node[], first: string, end: string): string[] {
  const takers = valuesByFlag(nodes).flatMap(([names]) => names)
  const paths = nodes.filter(({ path }) => path !== '').map(({ path }) => quote(` ${path}`))
  return [
    `  for ((i = ${first}; i < ${end}; i++)); do`,
    '    word=${words[i]}',
    "    if [[ -n $skip ]]; then skip=''; continue; fi",
    '    case $word in',
    `      ${takers.join('|')}) skip=1; continue ;;`,
    '      -*) continue ;;',
    '    esac',
    `    case "$at $word" in`,
    `      ${paths.join('|')}) at="$at $word" ;;`,
    '    esac',
    '  done',
  ]
}

const QUEUES = 'rowlock completion queues 2>/dev/null'

function bash(nodes: readonly Node[]): string {
  const listed = (words: Words) =>
    words === 'queues' ? `$(${QUEUES})` : words === 'anything' ? '' : words.join(' ')
  return [
    '# Completion of rowlock for bash: eval "$(rowlock completion bash)"',
    '_rowlock() {',
    "  local i word at='' skip='' cur prev found=''",
    '  local -a words=("${COMP_WORDS[@]}")',
    '  COMPREPLY=()',
    '  cur=${words[COMP_CWORD]}',
    '  prev=${words[COMP_CWORD-1]}',
    ...walk(nodes, '1', 'COMP_CWORD'),
    '  case $prev in',
    ...valuesByFlag(nodes).map(([names, values]) =>
      values === 'anything'
        ? `    ${names.join('|')}) COMPREPLY=($(compgen -f -- "$cur")); return ;;`
        : `    ${names.join('|')}) COMPREPLY=($(compgen -W "${listed(values)}" -- "$cur")); return ;;`,
    ),
    '  esac',
    '  if [[ $cur == -* ]]; then',
    '    case $at in',
    ...nodes.map(
      ({ path, options }) =>
        `      ${quote(path && ` ${path}`)}) found='${options.flatMap(({ names }) => names).join(' ')}' ;;`,
    ),
    '    esac',
    '  else',
    '    case $at in',
    ...nodes.map(({ path, children, words }) => {
      const names = children.map(({ name }) => name).join(' ')
      const files = words === 'anything' ? ' COMPREPLY=($(compgen -f -- "$cur")); return ;' : ''
      return `      ${quote(path && ` ${path}`)})${files} found="${`${names} ${listed(words)}`.trim()}" ;;`
    }),
    '    esac',
    '  fi',
    '  COMPREPLY=($(compgen -W "$found" -- "$cur"))',
    '}',
    'complete -F _rowlock rowlock',
  ].join('\n')
}

function zsh(nodes: readonly Node[]): string {
  const described = (name: string, says: string) => quote(`${name.replaceAll(':', '\\:')}:${says}`)
  const offer = (words: Words) =>
    words === 'queues'
      ? `compadd -- \${(f)"$(${QUEUES})"}`
      : words === 'anything'
        ? '_files'
        : words.length === 0
          ? ''
          : `compadd -- ${words.join(' ')}`
  return [
    '#compdef rowlock',
    '# Completion of rowlock for zsh: eval "$(rowlock completion zsh)", after compinit',
    '_rowlock() {',
    "  local i word at='' skip='' cur prev",
    '  local -a found',
    '  cur=${words[CURRENT]}',
    '  prev=${words[CURRENT-1]}',
    ...walk(nodes, '2', 'CURRENT'),
    '  case $prev in',
    ...valuesByFlag(nodes).map(([names, values]) => `    ${names.join('|')}) ${offer(values)}; return ;;`),
    '  esac',
    '  case $at in',
    ...nodes.flatMap(({ path, children, options, words }) => {
      const flags = options.flatMap(({ names, says }) => names.map((name) => described(name, says)))
      const commands = children.map(({ name, says }) => described(name, says))
      return [
        `    ${quote(path && ` ${path}`)})`,
        `      if [[ $cur == -* ]]; then found=(${flags.join(' ')}); _describe option found; return; fi`,
        ...(commands.length > 0 ? [`      found=(${commands.join(' ')}); _describe command found`] : []),
        ...(offer(words) === '' ? [] : [`      ${offer(words)}`]),
        '      ;;',
      ]
    }),
    '  esac',
    '}',
    'compdef _rowlock rowlock',
  ].join('\n')
}

function fish(nodes: readonly Node[]): string {
  const lines = nodes.flatMap(({ path, children, options, words }) => {
    const [command, sub] = path.split(' ')
    const seen = (name: string) => `__fish_seen_subcommand_from ${name}`
    const names = children.map(({ name }) => name).join(' ')
    const here =
      path === ''
        ? '__fish_use_subcommand'
        : sub !== undefined
          ? `${seen(command!)}; and ${seen(sub)}`
          : names === ''
            ? seen(command!)
            : `${seen(command!)}; and not ${seen(names)}`
    const on = `complete -c rowlock -n ${quote(here)}`
    const offer = (values: Words) =>
      values === 'queues' ? quote(`(${QUEUES})`) : quote((values as string[]).join(' '))
    return [
      ...children.map(({ name, says }) => `${on} -f -a ${name} -d ${quote(says)}`),
      ...(words === 'anything' ? [`${on} -F`] : words.length === 0 ? [] : [`${on} -f -a ${offer(words)}`]),
      ...options.map(({ names: flags, says, values }) => {
        const named = flags.map((flag) =>
          flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`,
        )
        const takes = values === undefined ? '' : values === 'anything' ? ' -r' : ` -x -a ${offer(values)}`
        return `${on} ${named.join(' ')}${takes} -d ${quote(says)}`
      }),
    ]
  })
  return [
    '# Completion of rowlock for fish: rowlock completion fish > ~/.config/fish/completions/rowlock.fish',
    'complete -c rowlock -f',
    ...lines,
  ].join('\n')
}
