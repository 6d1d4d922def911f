// An address with several hosts, as libpq takes it: read into one address for each host. Pure.

import { RowlockError } from '../ground/errors.ts'

/** One of the hosts. */
export interface Target {
  /** Host and port, for messages. */
  readonly name: string
  /** The address of this host alone. */
  readonly connectionString: string
}

/** What a server must be to be taken. */
type Wanted = 'any' | 'read-write' | 'primary'

/** The hosts of one address, and which of them was taken last. */
export interface Hosts {
  readonly targets: readonly Target[]
  readonly wanted: Wanted
  last: number
}

const ADDRESS = /^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)([^/?#]*)([^?#]*)(?:\?([^#]*))?/
const WANTED: readonly string[] = ['any', 'read-write', 'primary'] satisfies Wanted[]
const OURS = ['host', 'port', 'target_session_attrs']

/**
 * The hosts of an address; undefined when it has one host and says nothing of what that must be: then there is nothing
 * to choose. `path` names the option. Errors: INVALID_OPTION.
 */
export function hostsOf(connectionString: string, path = 'connectionString'): Hosts | undefined {
  const [, start = '', authority = '', place = '', query = ''] = ADDRESS.exec(connectionString) ?? []
  if (start === '') return undefined
  const pieces = query.split('&').filter((piece) => piece !== '')
  const named = (name: string) =>
    decoded(pieces.findLast((piece) => piece.startsWith(`${name}=`))?.slice(name.length + 1))
  const written = commas(authority).map(hostAndPort)
  const hosts = named('host') === '' ? written.map(({ host }) => host) : named('host').split(',')
  const wanted = named('target_session_attrs')
  if (hosts.length < 2 && (wanted === '' || wanted === 'any')) return undefined
  if (wanted !== '' && !WANTED.includes(wanted)) {
    throw refused(
      path,
      `target_session_attrs is ${wanted}: known are ${WANTED.join(', ')}. Workers write, so no standby is of use`,
    )
  }
  const ports = portsOf(
    path,
    named('port') === '' ? written.map(({ port }) => port) : named('port').split(','),
    hosts.length,
  )
  const rest = pieces.filter((piece) => !OURS.includes(piece.split('=', 1)[0]!)).join('&')
  const targets = hosts.map((host, n) => {
    if (host === '' && hosts.length > 1) throw refused(path, 'one of the hosts has no name')
    const server = `${inAddress(host)}${ports[n] === '' ? '' : `:${ports[n]}`}`
    return {
      name: server === '' ? 'localhost' : decoded(server),
      connectionString: `${start}${server}${place}${rest === '' ? '' : `?${rest}`}`,
    }
  })
  return { targets, wanted: wanted === '' ? 'read-write' : (wanted as Wanted), last: 0 }
}

/** A comma may be written as itself or as %2C. */
const commas = (text: string) => text.split(/,|%2C/i)

function hostAndPort(text: string): { host: string; port: string } {
  const [, six, name = '', port = ''] = /^(?:\[([^\]]*)\]|([^:]*))(?::(.*))?$/.exec(text) ?? []
  return { host: decoded(six ?? name), port }
}

/** One port is for all hosts, several are one for each. */
function portsOf(path: string, ports: readonly string[], hosts: number): readonly string[] {
  for (const port of ports) {
    if (port !== '' && !(/^\d+$/.test(port) && Number(port) > 0 && Number(port) < 65_536)) {
      throw refused(path, `a port is ${port}, and no number from 1 to 65535`)
    }
  }
  if (ports.length === hosts) return ports
  if (ports.length === 1) return Array.from({ length: hosts }, () => ports[0]!)
  throw refused(path, `${hosts} hosts and ${ports.length} ports: give one port for all, or one for each`)
}

/** As it stands in an address: a folder of sockets has slashes, an IPv6 address colons. */
function inAddress(host: string): string {
  if (host.includes(':')) return `[${host}]`
  return encodeURIComponent(host)
}

function decoded(text = ''): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

const refused = (path: string, why: string) => new RowlockError('INVALID_OPTION', `${path}: ${why}`, { path })
