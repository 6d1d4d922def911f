// The reference of the command line, from the program itself: what it would print as help, in Markdown.

const table = (head, rows) =>
  [head, head.map(() => '---'), ...rows]
    .map(
      (cells) =>
        `| ${cells.map((cell) => cell.replaceAll('|', '\\|').replaceAll(/\s+/g, ' ').trim()).join(' | ')} |`,
    )
    .join('\n')

/** A paragraph in lines that fit a screen. */
function wrapped(text) {
  return text.replaceAll(/\s+/g, ' ').replaceAll(/(?=.{117})(.{1,116}) /g, '$1\n')
}

/** All commands that do something, with their words: `rowlock queue pause`. */
export function commandsOf(command, path = command.name()) {
  const children = command.commands.filter((child) => !child._hidden)
  return children.flatMap((child) => {
    const own = `${path} ${child.name()}`
    return child.commands.length > 0 ? commandsOf(child, own) : [{ path: own, command: child }]
  })
}

/** The whole page's reference: global options, then each command below the heading of the help. */
export function describeProgram(program, exits) {
  const blocks = ['## For every command', optionsOf(program)]
  let heading
  for (const child of program.commands.filter((each) => !each._hidden)) {
    const group = child.helpGroup().replace(/:$/, '')
    if (group !== heading) blocks.push(`## ${group}`)
    heading = group
    const all = child.commands.length > 0 ? commandsOf(child, `rowlock ${child.name()}`) : undefined
    for (const { path, command } of all ?? [{ path: `rowlock ${child.name()}`, command: child }])
      blocks.push(...describe(path, command))
  }
  blocks.push(
    '## Exit codes',
    table(
      ['code', 'when', 'what to do next'],
      Object.values(exits).map(({ code, when, next }) => [`\`${code}\``, when, next]),
    ),
  )
  return blocks.join('\n\n')
}

function describe(path, command) {
  const blocks = [`### ${path}`]
  const aliases = command.aliases()
  const also = aliases.length > 0 ? ` (also: ${aliases.map((alias) => `\`${alias}\``).join(', ')})` : ''
  blocks.push(wrapped(`${command.description()}${also}`))
  blocks.push(`\`\`\`text\n${path} ${command.usage()}\n\`\`\``)
  const given = command.registeredArguments.filter(({ description }) => description)
  if (given.length > 0)
    blocks.push(
      table(
        ['argument', 'what it is'],
        given.map((each) => [`\`${each.name()}\``, each.description]),
      ),
    )
  if (command.options.some(({ hidden }) => !hidden)) blocks.push(optionsOf(command))
  return [...blocks, ...moreOf(command)]
}

/** A default is told where the option is made, or in brackets at the end of what it says. */
function optionsOf(command) {
  const rows = command.options
    .filter(({ hidden }) => !hidden)
    .map(({ flags, description, defaultValue, defaultValueDescription, argChoices }) => {
      const [, says, told] = /^(.*?)(?:[;,]? \(default: (.*)\)|[;,] default:? (.*))?$/s.exec(description)
      const plain = ['string', 'number'].includes(typeof defaultValue) ? `\`${defaultValue}\`` : ''
      const choices = argChoices ? ` (${argChoices.join(', ')})` : ''
      return [`\`${flags}\``, `${says}${choices}`, told ?? defaultValueDescription ?? plain]
    })
  return table(['option', 'what it does', 'default'], rows)
}

/** What its help says after the options: examples become a block of the shell, all else stays as it is. */
function moreOf(command) {
  let text = ''
  command.emit('afterHelp', {
    error: false,
    command,
    write: (more) => {
      text += more
    },
  })
  const blocks = []
  for (const part of text.trim().split(/\n\s*\n/)) {
    // What every command takes stands once, above.
    if (part.trim() === '' || part.startsWith('Every command takes')) continue
    const [first, ...rest] = part.split('\n')
    if (/^Examples?:$/.test(first.trim()))
      blocks.push(`\`\`\`sh\n${rest.map((line) => line.replace(/^ {2}/, '')).join('\n')}\n\`\`\``)
    else if (/^\s/.test(part) || rest.some((line) => /^\s/.test(line)))
      blocks.push(`\`\`\`text\n${part}\n\`\`\``)
    else blocks.push(wrapped(part))
  }
  return blocks
}
