// A server that says goodbye in the same breath in which it says that it is ready: nobody who asked for the connection
// listens to it yet, and the process must not die of it.

import net from 'node:net'
import { createRowlock, defineJob } from 'rowlock'
import { afterAll, beforeAll, expect, test } from 'vitest'

const message = (type: string, body: Buffer): Buffer => {
  const head = Buffer.alloc(5)
  head.write(type, 0)
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}

const GOODBYE = Buffer.concat([
  message('R', Buffer.alloc(4)), // authenticated
  message('Z', Buffer.from('I')), // ready
  message('E', Buffer.from('SFATAL\0VFATAL\0C57P01\0Mterminating connection\0\0')),
])

const server = net.createServer((socket) => {
  socket.on('error', () => {})
  socket.once('data', () => socket.end(GOODBYE))
})
beforeAll(() => new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve)))
afterAll(() => new Promise((resolve) => server.close(resolve)))

test('a connection that ends in the moment it is ready ends no process: the call fails', async () => {
  const { port } = server.address() as net.AddressInfo
  const rowlock = createRowlock({ connectionString: `postgres://nobody:nothing@127.0.0.1:${port}/none` })
  for (let tries = 0; tries < 3; tries++) {
    await expect(rowlock.enqueue(defineJob<number>('x'), tries)).rejects.toMatchObject({
      code: expect.stringMatching(/^(OUTCOME_UNKNOWN|DATABASE_UNAVAILABLE)$/),
    })
  }
  await rowlock.close()
})
