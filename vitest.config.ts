import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { mutate } from './faults/mutants/mutate.ts'

const src = (path: string) => fileURLToPath(new URL(`./src/${path}`, import.meta.url))

export default defineConfig({
  resolve: {
    alias: [
      { find: /^rowlock$/, replacement: src('index.ts') },
      { find: /^rowlock\/testing$/, replacement: src('testing/index.ts') },
      { find: /^rowlock\/embedded$/, replacement: src('embedded/index.ts') },
    ],
  },
  plugins: [mutate()],
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/global.ts'],
    setupFiles: process.env.ROWLOCK_TEST_POOLER === '1' ? ['test/support/pooled.ts'] : [],
    // The end of a hang, and no measure of anything: machines with much else to do take ten times as long.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    maxWorkers: 2,
  },
})
