// Rowlock as users get it: built by tsc, not transformed on the fly, which would cost each closure a call. Children
// import it from here; main has built it (`build.ts`) before the first child starts.

import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { BUILD_VARIABLE } from './built.ts'

const from = <T>(path: string): Promise<T> =>
  import(pathToFileURL(join(process.env[BUILD_VARIABLE] ?? '', 'src', path)).href)

/** What `import … from 'rowlock'` gives. */
export const rowlock = await from<typeof import('../../src/index.ts')>('index.js')

/** Verbs as a worker calls them, for loops without handlers. */
export const verbs = {
  ...(await from<typeof import('../../src/engine/claim.ts')>('engine/claim.js')),
  ...(await from<typeof import('../../src/engine/finish.ts')>('engine/finish.js')),
  ...(await from<typeof import('../../src/engine/lease.ts')>('engine/lease.js')),
  ...(await from<typeof import('../../src/engine/database.ts')>('engine/database.js')),
}
