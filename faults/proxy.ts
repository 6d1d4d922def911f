// A TCP proxy in front of PostgreSQL: passes, refuses, resets, swallows, delays; cuts in the middle of a message, and
// between the server's answer and the client; counts what is asked. It understands just the frames of the protocol.

import net from 'node:net'

/** What it does with every connection. */
export type ProxyMode = 'pass' | 'refuse' | 'blackhole'

/** The proxy: where it stands, what went through it, and what it can be told to do. */
export interface PostgresProxy {
  /** The URL of the same database through the proxy. */
  readonly url: string
  /** Every statement that clients sent, in order of arrival. */
  readonly statements: readonly { readonly text: string; readonly session: string }[]
  /** Bytes that clients sent. */
  readonly sentBytes: number
  /** Connections that clients have made so far. */
  readonly accepted: number
  /** Connections that are open towards clients. */
  readonly open: number
  /**
   * `refuse` closes the port and keeps what is open; `blackhole` accepts and holds back everything in both directions,
   * also on what is open, until `pass` lets it flow.
   */
  set(mode: ProxyMode): Promise<void>
  /** Hold back only the sessions whose application_name is this one; undefined ends it. */
  hold(session: string | undefined): void
  /** From now on new connections lead to this server, as a moving address does; what is open stays where it is. */
  lead(target: string): void
  /** What is open leads to nowhere from now on, without a word and without an end: its host was lost. */
  strand(): void
  /** Break every open connection. */
  reset(): void
  /**
   * Wait so long before each piece of data, in both directions; none overtakes another. 0: also what is on its way
   * arrives at once. Unit: ms.
   */
  delay(ms: number): void
  /**
   * Once: let the server answer the next statement that matches, and break the connection before the client sees it;
   * or, silently, keep it open without another word.
   */
  cutAnswer(matches: RegExp, how?: { readonly silently?: boolean }): Promise<void>
  /**
   * Once: of the next message in this direction let only half through, and break the connection; or, silently, keep it
   * open without another word. Resolves when it was done.
   */
  cutMessage(to: 'server' | 'client', how?: { readonly silently?: boolean }): Promise<void>
  /** Take back everything that was asked for; what is held flows. */
  calm(): Promise<void>
  close(): Promise<void>
}

/** What is on its way in one direction, in its order. */
type Way = (() => void)[]

interface Link {
  readonly client: net.Socket
  readonly server: net.Socket
  readonly toServer: Way
  readonly toClient: Way
  session: string
  readonly asked: string[]
  isCut: boolean
  /** Half a message went through: nothing more does. */
  isTorn: boolean
  isStranded: boolean
}

/** Start one in front of the server that this URL names. */
export async function startProxy(target: string): Promise<PostgresProxy> {
  let { hostname, port } = new URL(target)
  const links = new Set<Link>()
  const statements: { text: string; session: string }[] = []
  const held: { readonly link: Link; readonly way: Way; readonly write: () => void }[] = []
  let mode: ProxyMode = 'pass'
  let heldSession: string | undefined
  let delayMs = 0
  let sentBytes = 0
  let accepted = 0
  let cut: { readonly matches: RegExp; readonly isSilent: boolean; readonly done: () => void } | undefined

  let tear:
    | { readonly to: 'server' | 'client'; readonly isSilent: boolean; readonly done: () => void }
    | undefined

  /** What of this piece goes on; the rest of a message that is torn never does. */
  const torn = (link: Link, to: 'server' | 'client', data: Buffer): Buffer | undefined => {
    if (link.isTorn) return undefined
    if (tear?.to !== to || data.length < 2) return data
    const { isSilent, done } = tear
    tear = undefined
    link.isTorn = true
    done()
    if (!isSilent) setImmediate(() => breakLink(link))
    return data.subarray(0, data.length >> 1)
  }
  const breakLink = ({ client, server }: Link) => {
    client.resetAndDestroy()
    server.destroy()
  }
  const isHeld = (link: Link) =>
    mode === 'blackhole' || (heldSession !== undefined && link.session === heldSession)
  const pass = (link: Link, way: Way, write: () => void) => {
    if (link.isStranded) return
    if (isHeld(link)) held.push({ link, way, write })
    else if (delayMs > 0) {
      way.push(write)
      // Whichever timer is first: the piece that was.
      setTimeout(() => way.shift()?.(), delayMs)
    } else write()
  }
  const flush = () => {
    if (delayMs === 0) {
      for (const { toServer, toClient } of links) {
        for (const way of [toServer, toClient]) for (const write of way.splice(0)) write()
      }
    }
    for (const { link, way, write } of held.splice(0)) pass(link, way, write)
  }

  const server = net.createServer((client) => {
    accepted++
    const link: Link = {
      client,
      server: net.connect(Number(port), hostname),
      toServer: [],
      toClient: [],
      session: '',
      asked: [],
      isCut: false,
      isTorn: false,
      isStranded: false,
    }
    links.add(link)
    const asks = frames(true, (type, body) => {
      if (type === '') link.session = sessionOf(body)
      const text = textOf(type, body)
      if (text === undefined) return
      statements.push({ text, session: link.session })
      link.asked.push(text)
      if (cut?.matches.test(text)) {
        link.isCut = true
        link.asked.length = 0
        link.asked.push(text)
      }
    })
    const answers = frames(false, (type) => {
      if (type !== 'Z' || link.asked.shift() === undefined || !link.isCut || cut === undefined) return
      const { done, isSilent } = cut
      cut = undefined
      if (!isSilent) client.destroy()
      done()
    })
    client.on('data', (data) => {
      sentBytes += data.length
      asks(data)
      const piece = torn(link, 'server', data)
      if (piece !== undefined) pass(link, link.toServer, () => link.server.write(piece))
    })
    link.server.on('data', (data) => {
      answers(data)
      const piece = link.isCut ? undefined : torn(link, 'client', data)
      if (piece !== undefined) pass(link, link.toClient, () => client.write(piece))
    })
    client.on('close', () => {
      if (link.isStranded) links.delete(link)
      pass(link, link.toServer, () => link.server.destroy())
    })
    link.server.on('close', () => {
      if (!link.isStranded) links.delete(link)
      pass(link, link.toClient, () => client.destroy())
    })
    client.on('error', () => {})
    link.server.on('error', () => {})
  })
  const listen = (at: number) =>
    new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(at, '127.0.0.1', () => {
        server.off('error', reject)
        resolve()
      })
    })
  await listen(0)
  const ownPort = (server.address() as net.AddressInfo).port
  const url = new URL(target)
  url.hostname = '127.0.0.1'
  url.port = String(ownPort)

  const reset = () => {
    held.length = 0
    for (const link of links) breakLink(link)
  }
  const set = async (next: ProxyMode) => {
    if (next === mode) return
    if (mode === 'refuse') await listen(ownPort)
    if (next === 'refuse') server.close()
    mode = next
    flush()
  }
  return {
    url: url.href,
    statements,
    get sentBytes() {
      return sentBytes
    },
    get accepted() {
      return accepted
    },
    get open() {
      return [...links].filter(({ client }) => !client.destroyed).length
    },
    set,
    hold(session) {
      heldSession = session
      flush()
    },
    lead(to) {
      ;({ hostname, port } = new URL(to))
    },
    strand() {
      for (const link of links) {
        link.isStranded = true
        link.toServer.length = link.toClient.length = 0
        link.server.destroy()
      }
    },
    reset,
    delay(ms) {
      delayMs = ms
      flush()
    },
    cutAnswer: (matches, { silently = false } = {}) =>
      new Promise<void>((done) => {
        cut = { matches, isSilent: silently, done }
      }),
    cutMessage: (to, { silently = false } = {}) =>
      new Promise<void>((done) => {
        tear = { to, isSilent: silently, done }
      }),
    async calm() {
      delayMs = 0
      heldSession = undefined
      cut = undefined
      tear = undefined
      for (const link of links) if (link.isCut || link.isTorn) breakLink(link)
      await set('pass')
      flush()
    },
    async close() {
      reset()
      if (server.listening) await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Cuts a stream into messages; the first one of a client has no type. */
function frames(isClient: boolean, onFrame: (type: string, body: Buffer) => void): (data: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0)
  let isFirst = isClient
  return (data) => {
    rest = rest.length === 0 ? data : Buffer.concat([rest, data])
    for (;;) {
      const head = isFirst ? 0 : 1
      if (rest.length < head + 4) return
      const end = head + rest.readUInt32BE(head)
      if (rest.length < end) return
      onFrame(isFirst ? '' : String.fromCharCode(rest[0]!), rest.subarray(head + 4, end))
      isFirst = false
      rest = rest.subarray(end)
    }
  }
}

function sessionOf(startup: Buffer): string {
  const words = startup.subarray(4).toString().split('\0')
  const at = words.indexOf('application_name')
  return at < 0 ? '' : (words[at + 1] ?? '')
}

function textOf(type: string, body: Buffer): string | undefined {
  if (type === 'Q') return body.subarray(0, -1).toString()
  return type === 'P' ? body.toString().split('\0')[1] : undefined
}
