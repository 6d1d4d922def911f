// Takes a guard out of one TypeScript file while the tests load it: ROWLOCK_MUTANT holds the mutant as JSON. Without it
// nothing happens.

import { fileURLToPath } from 'node:url'
import { type Mutant, withoutGuard } from './mutant.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** The plugin of vite that does it. */
export function mutate(): {
  name: string
  enforce: 'pre'
  transform(code: string, id: string): string | undefined
} {
  return {
    name: 'rowlock-mutant',
    enforce: 'pre',
    transform(code, id) {
      const given = process.env.ROWLOCK_MUTANT
      if (!given) return undefined
      const mutant = JSON.parse(given) as Mutant
      const isMeant = mutant.file.endsWith('.ts') && id.split('?')[0] === `${ROOT}${mutant.file}`
      return isMeant ? withoutGuard(code, mutant) : undefined
    },
  }
}
