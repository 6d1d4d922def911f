// A mail system of its own, on this machine: takes messages, forgets to say so now and then, and knows a Message-ID
// again.

import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { SMTPServer } from 'smtp-server'
import { Book } from './book.ts'
import { drawLuck } from './luck.ts'

/** The mailbox that is not there. */
export const NO_SUCH_MAILBOX = 'nobody@customer.example'

export class SmtpSink {
  readonly book = new Book()
  readonly #server: SMTPServer
  readonly #sockets = new Map<number | undefined, { destroy(): void }>()

  constructor() {
    this.#server = new SMTPServer({
      authOptional: true,
      disabledCommands: ['AUTH', 'STARTTLS'],
      disableReverseLookup: true,
      closeTimeout: 500,
      onRcptTo: ({ address }, _session, done) =>
        done(address === NO_SUCH_MAILBOX ? reply(550, 'No such mailbox') : null),
      onData: (stream, { remotePort }, done) => {
        text(stream)
          .then((message) => this.#receive(message, () => this.#sockets.get(remotePort)?.destroy()))
          .then(
            () => done(null),
            (error) => done(error),
          )
      },
    })
    this.#server.on('error', () => {})
    this.#server.server.on('connection', (socket) => {
      const { remotePort } = socket
      this.#sockets.set(remotePort, socket)
      socket.once('close', () => this.#sockets.delete(remotePort))
    })
  }

  async start(): Promise<number> {
    const { server } = this.#server
    this.#server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return (server.address() as AddressInfo).port
  }

  async stop(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve())
      for (const socket of this.#sockets.values()) socket.destroy()
    })
  }

  async #receive(message: string, drop: () => void): Promise<void> {
    const key = header(message, 'Message-ID')
    const reference = header(message, 'X-Reference')
    if (key === undefined || reference === undefined) throw reply(554, 'No Message-ID')
    const luck = drawLuck(`mail ${reference}`, this.book.arrive(key))
    if (luck === 'slow') await sleep(1_500)
    if (luck === 'busy') throw reply(450, 'Mailbox busy')
    if (luck === 'error') throw reply(451, 'Try again later')
    if (luck === 'drop') return drop()
    this.book.take(key, reference)
    if (luck === 'error_after') throw reply(451, 'Taken, and not said so')
    if (luck === 'drop_after') drop()
  }
}

function header(message: string, name: string): string | undefined {
  const end = message.search(/\r?\n\r?\n/)
  const head = (end < 0 ? message : message.slice(0, end)).replace(/\r?\n[ \t]+/g, ' ')
  return head.match(new RegExp(`^${name}: *(.+?)\\r?$`, 'im'))?.[1]
}

function reply(responseCode: number, message: string): Error {
  return Object.assign(new Error(message), { responseCode })
}
