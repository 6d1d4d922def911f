// The ERP: slow, answers 500 and 429, drops connections, goes down for a while. It honours idempotency keys: a key it
// has on its book is answered from the book and not applied again.

import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { Book } from './book.ts'
import { drawLuck } from './luck.ts'
import { isSigned } from './signature.ts'

/** Records of this event the ERP refuses for good. */
export const UNKNOWN_EVENT = 'carrier_pigeon'
/** At records of this event the ERP fails each time. */
export const CURSED_EVENT = 'cursed'
/** Records of this event the ERP never answers. */
export const HELD_EVENT = 'held'

const MAX_BODY_BYTES = 1_000_000

export class ErpReceiver {
  readonly book = new Book()
  readonly #numbers = new Map<string, number>()
  readonly #secret: string
  #server: Server | undefined
  #port = 0
  #slow = false
  #refused = 0

  constructor(secret: string) {
    this.#secret = secret
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`
  }

  get mood(): 'well' | 'slow' | 'down' {
    if (this.#server === undefined) return 'down'
    return this.#slow ? 'slow' : 'well'
  }

  /** Requests with a bad signature, or a key that stands for another record. */
  get refused(): number {
    return this.#refused
  }

  /** Listen; after `stop`, on the same port as before. */
  async start(): Promise<void> {
    if (this.#server !== undefined) return
    const server = createServer((request, response) => {
      this.#answer(request, response).catch(() => response.destroy())
    })
    server.listen(this.#port, '127.0.0.1')
    await once(server, 'listening')
    this.#port = (server.address() as AddressInfo).port
    this.#server = server
  }

  /** Go down: no connection is taken, those that are open break. */
  async stop(): Promise<void> {
    const server = this.#server
    this.#server = undefined
    if (server === undefined) return
    const closed = once(server, 'close')
    server.close()
    server.closeAllConnections()
    await closed
  }

  setSlow(slow: boolean): void {
    this.#slow = slow
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const say = (status: number, body: object, headers: Record<string, string> = {}) => {
      response.writeHead(status, { 'content-type': 'application/json', ...headers })
      response.end(JSON.stringify(body))
    }
    if (request.method !== 'POST' || request.url !== '/records') return say(404, { error: 'no such page' })
    if (Number(request.headers['content-length'] ?? 0) > MAX_BODY_BYTES)
      return say(413, { error: 'too large' })
    const body = await text(request)
    const key = String(request.headers['idempotency-key'] ?? '')
    if (key === '' || !isSigned(this.#secret, key, body, String(request.headers['x-signature-256'] ?? ''))) {
      this.#refused++
      return say(401, { error: 'bad signature' })
    }
    const { reference, event } = JSON.parse(body) as { reference: string; event: string }
    if (event === HELD_EVENT) return
    if (event === UNKNOWN_EVENT) return say(422, { error: `unknown event ${event}` })
    const luck = drawLuck(`record ${reference}`, this.book.arrive(key))
    await sleep(20 + (body.length % 80) + (luck === 'slow' ? 1_500 : 0) + (this.#slow ? 2_500 : 0))
    if (event === CURSED_EVENT || luck === 'error') return say(500, { error: 'deadlock in module ZFI' })
    if (luck === 'busy') return say(429, { error: 'too many requests' }, { 'retry-after': '1' })
    if (luck === 'drop') return void response.destroy()
    const known = this.book.referenceOf(key)
    if (known !== undefined && known !== reference) {
      this.#refused++
      return say(409, { error: 'this key stands for another record' })
    }
    const entry = this.book.take(key, reference)
    if (entry === 'taken') this.#numbers.set(key, this.book.size)
    if (luck === 'drop_after') return void response.destroy()
    if (luck === 'error_after') return say(500, { error: 'booked, but the printer is on fire' })
    say(200, { number: this.#numbers.get(key), repeated: entry === 'repeated' })
  }
}
