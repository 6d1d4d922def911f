import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { startedAt } from '../../src/embedded/alive.ts'
import { inTurn } from '../../src/embedded/turn.ts'
import { scratch } from './scratch.ts'

test('one at a time, and old turns are swept', async () => {
  const folder = join(scratch(), 'turns')
  let inside = 0
  let most = 0
  const work = async () => {
    inside += 1
    most = Math.max(most, inside)
    await setImmediate()
    inside -= 1
  }
  await Promise.all(Array.from({ length: 25 }, () => inTurn(folder, 60_000, work)))
  expect(most).toBe(1)
  expect(readdirSync(folder).length).toBeLessThan(12)
})

test('a turn that fails is over', async () => {
  const folder = scratch()
  const fails = () => Promise.reject(new Error('no'))
  await expect(inTurn(folder, 60_000, fails)).rejects.toThrow('no')
  expect(await inTurn(folder, 60_000, async () => 'next')).toBe('next')
})

test('everybody can read whose turn it is, whatever the umask', async () => {
  const folder = scratch()
  const before = process.umask(0o077)
  try {
    const mode = await inTurn(folder, 60_000, async () => statSync(join(folder, '1')).mode & 0o777)
    expect(mode).toBe(0o644)
  } finally {
    process.umask(before)
  }
})

test('a holder that was killed holds nothing, a living one is waited for', async () => {
  const folder = scratch()
  const holder = spawn('sleep', ['600'])
  writeFileSync(join(folder, '7'), `${holder.pid} ${startedAt(holder.pid ?? 0)}`)
  await expect(inTurn(folder, 100, async () => 'mine')).rejects.toMatchObject({
    code: 'EMBEDDED_UNAVAILABLE',
  })
  holder.kill('SIGKILL')
  await once(holder, 'exit')
  expect(await inTurn(folder, 60_000, async () => 'mine')).toBe('mine')
})

test('a holder whose number belongs to another process by now holds nothing', async () => {
  const folder = scratch()
  writeFileSync(join(folder, '3'), `${process.pid} 1`)
  expect(await inTurn(folder, 60_000, async () => 'mine')).toBe('mine')
})
