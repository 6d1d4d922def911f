// A worker's right to run, by its own clock: given up before the database gives it up.

import { expect, test, vi } from 'vitest'
import { Lease } from '../../src/worker/lease.ts'
import { until } from '../support/until.ts'

function make(leaseMs: number) {
  const lost: string[] = []
  return { lost, lease: new Lease(leaseMs, (workerId) => void lost.push(workerId)) }
}

test('a lease counts from the moment the question was sent, not from its answer', () => {
  const { lease } = make(60_000)
  lease.granted('a', performance.now() - 30_000)
  expect(lease.leftMs).toBeLessThanOrEqual(30_000)
  expect(lease.workerId).toBe('a')
  lease.granted('a', performance.now() - 61_000)
  expect(lease.holds).toBe(false)
  expect(lease.workerId).toBeUndefined()
  expect(lease.lastWorkerId).toBe('a')
  lease.end()
})

test('a lease that runs out is lost once, by itself', async () => {
  const { lease, lost } = make(20)
  lease.granted('a', performance.now())
  await until('it is lost', () => lost.length > 0)
  lease.check()
  lease.lose()
  expect(lost).toEqual(['a'])
  expect(lease.lastWorkerId).toBeUndefined()
})

test('a timer that fires before its time is no end, and not the last one', () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  try {
    const { lease, lost } = make(1_000)
    lease.granted('a', performance.now() + 0.5)
    const early = vi.spyOn(performance, 'now').mockReturnValue(performance.now())
    vi.advanceTimersByTime(1_002)
    expect(lost).toEqual([])
    early.mockRestore()
    vi.advanceTimersByTime(2_000)
    expect(lost).toEqual(['a'])
  } finally {
    vi.useRealTimers()
  }
})

test('so are all of many, whatever the fraction of a millisecond they began at', async () => {
  const leases = Array.from({ length: 300 }, (_, n) => {
    const made = make(20)
    made.lease.granted('a', performance.now() - (n % 100) / 100)
    return made
  })
  await until('each is lost', () => leases.every(({ lost }) => lost.length === 1))
})

test('one that was extended is not', () => {
  const { lease, lost } = make(60_000)
  lease.granted('a', performance.now() - 59_999)
  lease.granted('a', performance.now())
  lease.check()
  expect(lost).toEqual([])
  lease.end()
})

test('after the end no late answer brings it back, and nobody is told', () => {
  const { lease, lost } = make(60_000)
  lease.granted('a', performance.now())
  lease.end()
  lease.granted('b', performance.now())
  expect(lease.holds).toBe(false)
  expect(lease.lastWorkerId).toBeUndefined()
  expect(lost).toEqual([])
})

test('each identity is new', () => {
  expect(new Set(Array.from({ length: 100 }, () => Lease.newId())).size).toBe(100)
})
