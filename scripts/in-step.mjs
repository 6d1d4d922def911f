// Is node_modules what package-lock.json asks for? Exit code 0 if so. Plain JavaScript that imports only what node brings:
// it runs before anything is installed.

import { readFileSync } from 'node:fs'

const packages = (file) => JSON.parse(readFileSync(new URL(`../${file}`, import.meta.url), 'utf8')).packages

try {
  const wanted = packages('package-lock.json')
  // npm writes down here what it has installed.
  const found = packages('node_modules/.package-lock.json')
  const same = (a, b) => a.version === b?.version && a.integrity === b?.integrity
  const isInStep =
    Object.entries(wanted).every(([path, entry]) => {
      if (path === '') return true
      // What is optional may be missing: it is for another platform.
      return found[path] === undefined ? entry.optional === true : same(entry, found[path])
    }) && Object.keys(found).every((path) => wanted[path] !== undefined)
  process.exit(isInStep ? 0 : 1)
} catch {
  process.exit(1)
}
