import { spawn } from 'node:child_process'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { startedAt } from '../../src/embedded/alive.ts'
import { other } from './other.ts'
import { home, parentOf, query, start } from './scratch.ts'
import { until } from './until.ts'

test('a postmaster that was killed starts again with its rows', async () => {
  const dataDir = await home()
  const killed = await start({ dataDir })
  await query(killed.url, 'create table boat as select 4 as seats')
  process.kill(killed.pid, 'SIGKILL')
  const again = await start({ dataDir })
  expect(again.attached).toBe(false)
  expect(await query(again.url, 'select seats from boat')).toEqual([{ seats: 4 }])
  await killed.stop()
  expect(await query(again.url, 'select seats from boat')).toEqual([{ seats: 4 }])
})

test('a stale pid file whose number another process of the same account has is no hindrance', async () => {
  const dataDir = await home()
  const killed = await start({ dataDir })
  const { uid, gid } = statSync(join(dataDir, 'data'))
  process.kill(killed.pid, 'SIGKILL')
  await until('the killed is gone', () => startedAt(killed.pid) === undefined)
  const bystander = spawn('sleep', ['600'], { uid, gid, cwd: '/', stdio: 'ignore' })
  onTestFinished(() => void bystander.kill())
  blame(dataDir, bystander.pid)
  const again = await start({ dataDir })
  expect(again.attached).toBe(false)
  expect(bystander.exitCode).toBe(null)
})

test('a stale pid file whose number is a zombie is no hindrance', async () => {
  const dataDir = await home()
  const killed = await start({ dataDir })
  const { uid, gid } = statSync(join(dataDir, 'data'))
  process.kill(killed.pid, 'SIGKILL')
  await until('the killed is gone', () => startedAt(killed.pid) === undefined)
  // The shell becomes a program that never asks after its child.
  const parent = spawn('sh', ['-c', 'true & exec sleep 600'], { uid, gid, cwd: '/', stdio: 'ignore' })
  onTestFinished(() => void parent.kill())
  const children = () => readFileSync(`/proc/${parent.pid}/task/${parent.pid}/children`, 'utf8').trim()
  await until('there is a zombie', () => {
    const child = children()
    return child !== '' && readFileSync(`/proc/${child}/stat`, 'utf8').includes(') Z ')
  })
  blame(dataDir, Number(children()))
  expect((await start({ dataDir })).attached).toBe(false)
})

test('a server is gone after the only node process that held it was killed', async () => {
  const held = await other({ dataDir: await home() })
  const keeper = parentOf(held.pid)
  held.child.kill('SIGKILL')
  await until('the server is gone', () => startedAt(held.pid) === undefined)
  await until('its keeper is gone', () => startedAt(keeper) === undefined)
})

test('a server whose starter was killed stays for those who attached', async () => {
  const dataDir = await home()
  const starter = await other({ dataDir })
  const attached = await start({ dataDir })
  starter.child.kill('SIGKILL')
  await starter.ended
  const late = await start({ dataDir })
  expect([attached.pid, late.pid]).toEqual([starter.pid, starter.pid])
  await late.stop()
  expect(await query(attached.url, 'select 1 as one')).toEqual([{ one: 1 }])
  await attached.stop()
  expect(startedAt(starter.pid)).toBeUndefined()
})

test('a server whose keeper was killed gets another one, and still ends with its last user', async () => {
  const dataDir = await home()
  const server = await start({ dataDir })
  const keeper = parentOf(server.pid)
  const named = () => JSON.parse(readFileSync(join(dataDir, 'keeper.json'), 'utf8')).pid as number
  expect(named()).toBe(keeper)
  process.kill(keeper, 'SIGKILL')
  await until('another keeper is there', () => named() !== keeper)
  expect(await query(server.url, 'select 1 as one')).toEqual([{ one: 1 }])
  await server.stop()
  expect(startedAt(server.pid)).toBeUndefined()
})

test('a server that lost its keeper and its users is found again', async () => {
  const dataDir = await home()
  const lost = await other({ dataDir })
  const keeper = parentOf(lost.pid)
  lost.child.kill('SIGSTOP')
  process.kill(keeper, 'SIGKILL')
  lost.child.kill('SIGKILL')
  await lost.ended
  const found = await start({ dataDir })
  expect(found).toMatchObject({ attached: true, pid: lost.pid })
  await found.stop()
  expect(startedAt(lost.pid)).toBeUndefined()
})

/** Make the stale pid file name another process. */
function blame(dataDir: string, pid: number | undefined): void {
  const file = join(dataDir, 'data/postmaster.pid')
  writeFileSync(file, readFileSync(file, 'utf8').replace(/^\d+/, String(pid)))
}
