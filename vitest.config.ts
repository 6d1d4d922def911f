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
    testTimeout: 30_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
  },
})
