// What the proxy does to a message that it tears, and that it lets go of everything it was asked for.

import net from 'node:net'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type PostgresProxy, startProxy } from '../../faults/proxy.ts'
import { adminUrl } from '../support/server.ts'
import { until } from '../support/until.ts'

let proxy: PostgresProxy
const clients: pg.Client[] = []
beforeAll(async () => {
  proxy = await startProxy(adminUrl())
})
afterEach(async () => {
  await proxy.calm()
  await Promise.all(clients.splice(0).map((client) => client.end().catch(() => {})))
})
afterAll(() => proxy.close())

async function connect(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: proxy.url })
  client.on('error', () => {})
  clients.push(client)
  await client.connect()
  return client
}
const answer = (client: pg.Client, text: string) =>
  client.query(text).then(
    ({ rows }) => rows[0],
    () => 'broken',
  )

test.each(['server', 'client'] as const)(
  'a message to the %s that is torn breaks its link only',
  async (to) => {
    const [torn, other] = [await connect(), await connect()]
    void proxy.cutMessage(to)
    expect(await answer(torn, 'select 1 as n')).toBe('broken')
    expect(await answer(other, 'select 2 as n')).toEqual({ n: 2 })
  },
)

test.each(['server', 'client'] as const)(
  'torn silently to the %s, it says nothing more until it is calmed',
  async (to) => {
    const [client, other] = [await connect(), await connect()]
    const torn = proxy.cutMessage(to, { silently: true })
    let heard: unknown
    void answer(client, 'select 1 as n').then((said) => {
      heard = said
    })
    await torn
    expect(await answer(other, 'select 2 as n')).toEqual({ n: 2 })
    expect(heard).toBeUndefined()
    await proxy.calm()
    await until('its link is broken', () => heard === 'broken')
  },
)

test('what was delayed arrives when the delay is taken back, before what came after it', async () => {
  const sockets: net.Socket[] = []
  const server = net.createServer((socket) => void sockets.push(socket.on('error', () => {})))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as net.AddressInfo
  const slow = await startProxy(`postgres://127.0.0.1:${port}/x`)
  const client = net.connect(Number(new URL(slow.url).port), '127.0.0.1')
  client.on('error', () => {})
  let heard = ''
  client.on('data', (data) => {
    heard += data
  })
  try {
    await until('it is through', () => sockets.length === 1)
    sockets[0]!.write('1')
    await until('it is heard', () => heard === '1')
    slow.delay(600_000)
    sockets[0]!.write('2')
    client.write('x')
    await until('the delay has begun for it', () => slow.sentBytes === 1)
    slow.delay(0)
    sockets[0]!.write('3')
    await until('all is heard', () => heard.length === 3)
    expect(heard).toBe('123')
  } finally {
    client.destroy()
    await slow.close()
    server.close()
  }
})

test('what was asked for is taken back', async () => {
  const client = await connect()
  void proxy.cutAnswer(/select 3/)
  void proxy.cutMessage('server')
  proxy.delay(60_000)
  proxy.hold('')
  await proxy.set('blackhole')
  const asked = answer(client, 'select 4 as n')
  await proxy.calm()
  await asked
  expect(await answer(await connect(), 'select 3 as n')).toEqual({ n: 3 })
})
