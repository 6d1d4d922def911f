// The book of the pictures is a folder: what counts in it, and what does not.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { findPictures, readPictureBook, renderPictures } from '../../examples/demo/pictures.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rowlock-pictures-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

test('a whole picture counts, a torn one, a draft and a stranger do not', async () => {
  const [rendered] = await renderPictures(folder)
  const whole = readFileSync(rendered!)
  writeFileSync(join(folder, 'order-1--key.1.webp'), whole)
  writeFileSync(join(folder, 'order-2--key.2.webp'), whole.subarray(0, whole.length / 2))
  writeFileSync(join(folder, '.order-3--key.3.77.1'), whole)
  expect([...(await readPictureBook(folder))]).toEqual([['order-1', 1]])
})

test('two files of one order are two effects', async () => {
  const [rendered] = await renderPictures(folder)
  const whole = readFileSync(rendered!)
  for (const key of ['a', 'b']) writeFileSync(join(folder, `order-1--${key}.webp`), whole)
  expect([...(await readPictureBook(folder))]).toEqual([['order-1', 2]])
})

test('a folder of one’s own is used, and one without pictures is refused', async () => {
  await expect(findPictures(folder, folder)).rejects.toThrow('there is no picture in')
  const files = await renderPictures(folder)
  expect(await findPictures(folder, folder)).toEqual({ files, from: folder })
})
