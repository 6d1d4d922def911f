// Makes a small picture of a large one. The file appears whole or not at all, under a name made from the idempotency
// key: an attempt that runs twice writes the same file twice.

import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import { handle, permanent } from 'rowlock'
import sharp from 'sharp'
import { resizePicture } from '../jobs.ts'

export function pictureHandler(folder: string) {
  sharp.concurrency(1)
  return handle(resizePicture, async ({ input, job, idempotencyKey }) => {
    const { reference, picture, width } = input
    const name = `${reference}--${idempotencyKey.replaceAll(':', '.')}`
    const draft = join(folder, `.${name}.${process.pid}.${job.attempt}`)
    const small = await sharp(picture)
      .autoOrient()
      .resize({ width })
      .webp({ quality: 80 })
      .toBuffer()
      .catch((error: unknown) => {
        throw permanent(Object.assign(error as Error, { code: 'unreadable_picture' }))
      })
    await sharp(small).toFile(draft)
    await rename(draft, join(folder, `${name}.webp`))
  })
}
