// Addresses with several hosts, as libpq takes them: how they are read.

import { expect, test } from 'vitest'
import { hostsOf } from '../../src/engine/hosts.ts'
import { createRowlock, handle } from '../../src/index.ts'
import { note } from '../support/ground.ts'

const addresses = (connectionString: string) =>
  hostsOf(connectionString)?.targets.map((target) => target.connectionString)

test.each<[string, string[]]>([
  ['postgres://a,b/shop', ['postgres://a/shop', 'postgres://b/shop']],
  ['postgres://u:p@a:5432,b:5433/shop', ['postgres://u:p@a:5432/shop', 'postgres://u:p@b:5433/shop']],
  ['postgres://u@a%2Cb:1/shop', ['postgres://u@a/shop', 'postgres://u@b:1/shop']],
  ['postgresql://a,b', ['postgresql://a', 'postgresql://b']],
  [
    'postgres://u@a,b/shop?sslmode=require&target_session_attrs=primary&options=-c%20x%3D1',
    [
      'postgres://u@a/shop?sslmode=require&options=-c%20x%3D1',
      'postgres://u@b/shop?sslmode=require&options=-c%20x%3D1',
    ],
  ],
  ['postgres:///shop?host=a,b', ['postgres://a/shop', 'postgres://b/shop']],
  ['postgres://u@/shop?port=6000&host=a%2Cb', ['postgres://u@a:6000/shop', 'postgres://u@b:6000/shop']],
  ['postgres:///shop?host=a,b&port=1,2', ['postgres://a:1/shop', 'postgres://b:2/shop']],
  ['postgres://a:1,b:2/shop?port=3', ['postgres://a:3/shop', 'postgres://b:3/shop']],
  [
    'postgres://[::1]:1,[fe80::2],c/shop',
    ['postgres://[::1]:1/shop', 'postgres://[fe80::2]/shop', 'postgres://c/shop'],
  ],
  ['postgres:///shop?host=::1,b', ['postgres://[::1]/shop', 'postgres://b/shop']],
  ['postgres:///shop?host=/run/a,/run/b', ['postgres://%2Frun%2Fa/shop', 'postgres://%2Frun%2Fb/shop']],
  ['postgres://u:a,b%2C@a,b/shop,too', ['postgres://u:a,b%2C@a/shop,too', 'postgres://u:a,b%2C@b/shop,too']],
])('several hosts: %s', (connectionString, expected) => {
  expect(addresses(connectionString)).toEqual(expected)
})

test.each([
  'postgres://app:a,b@db/shop',
  'postgres://app:a,b%2C@db:5432/shop?options=a,b',
  'postgres://db/shop,too',
  'postgres:///shop?host=/var/run/postgresql',
  'postgres://[::1]:5432/shop',
  'postgres://db/shop?target_session_attrs=any',
  'db=shop host=a,b',
])('one host is left to pg, wherever else a comma stands: %s', (connectionString) => {
  expect(hostsOf(connectionString)).toBeUndefined()
  expect(() => createRowlock({ connectionString })).not.toThrow()
})

test('several hosts must be writable, unless the address says otherwise; one host when it says so', () => {
  const wanted = (connectionString: string) => hostsOf(connectionString)?.wanted
  expect(wanted('postgres://a,b/shop')).toBe('read-write')
  expect(wanted('postgres://a,b/shop?target_session_attrs=primary')).toBe('primary')
  expect(wanted('postgres://a,b/shop?target_session_attrs=any')).toBe('any')
  expect(wanted('postgres://a/shop?target_session_attrs=read-write')).toBe('read-write')
  expect(addresses('postgres://u@a:1/shop?target_session_attrs=primary')).toEqual(['postgres://u@a:1/shop'])
})

test.each([
  ['postgres://a,b/shop?target_session_attrs=standby', /is standby: known are any, read-write, primary/],
  ['postgres://a/shop?target_session_attrs=prefer-standby', /is prefer-standby: known are/],
  ['postgres://a,,b/shop', /one of the hosts has no name/],
  ['postgres:///shop?host=a,b,c&port=1,2', /3 hosts and 2 ports/],
  ['postgres://u:secret@a:x,b/shop', /a port is x/],
  ['postgres://u:secret@a:65536,b/shop', /a port is 65536/],
])('what no host can be made of is refused: %s', (connectionString, why) => {
  const listening = { handlers: [handle(note, () => {})], listenConnectionString: connectionString }
  const refusals = {
    connectionString: () => createRowlock({ connectionString }),
    listenConnectionString: () => createRowlock({ connectionString: 'postgres://a/b' }).worker(listening),
  }
  for (const [path, refusal] of Object.entries(refusals)) {
    const error = refusalOf(refusal)
    expect(error).toMatchObject({ code: 'INVALID_OPTION', path })
    expect(error.message).toMatch(why)
    expect(error.message).not.toContain('secret')
  }
})

function refusalOf(refusal: () => unknown): Error {
  try {
    refusal()
  } catch (error) {
    return error as Error
  }
  throw new Error('it was not refused')
}
