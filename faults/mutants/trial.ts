// Tries mutants: for each a database with that one guard less, or that one file without it, and the test that is to
// miss it. One vitest stays open for all of them: what takes time is its start.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { inspect } from 'node:util'
import pg from 'pg'
import { createVitest, type TestModule, type Vitest } from 'vitest/node'
import { Database } from '../../src/engine/database.ts'
import { migrate } from '../../src/engine/migrate.ts'
import { type Mutant, withoutGuard } from './mutant.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const SOUND = 'rowlock_sound'

/** What became of a mutant. */
export interface Verdict {
  /** Tests that failed on it, as `file › name`. */
  readonly failed: readonly string[]
  /** How many tests ran. */
  readonly ran: number
  /** Errors outside of tests. */
  readonly says: string
}

/** A server on which mutants are tried. */
export class Trials {
  readonly #url: string
  readonly #vitest: Vitest
  #count = 0

  private constructor(url: string, vitest: Vitest) {
    this.#url = url
    this.#vitest = vitest
  }

  /** `url`: of a superuser, to any database of the server. */
  static async begin(url: string): Promise<Trials> {
    await administer(url, `drop database if exists ${SOUND} with (force)`)
    await administer(url, `create database ${SOUND}`)
    const database = new Database({ connectionString: urlOf(url, SOUND) })
    await migrate(database)
    await database.close()
    // Its workers are forked from this process, and so is its setup.
    process.env.ROWLOCK_TEST_URL = url
    process.env.ROWLOCK_TEST_TEMPLATE = SOUND
    process.env.ROWLOCK_TEST_SEED ??= '1'
    const vitest = await createVitest('test', {
      root: ROOT,
      watch: false,
      fileParallelism: false,
      reporters: [{}],
      // Many a mutant is missed by a test that waits for ever.
      testTimeout: 40_000,
      hookTimeout: 40_000,
    })
    return new Trials(url, vitest)
  }

  async end(): Promise<void> {
    await this.#vitest.close()
  }

  /** Run these tests (all of the files, or the one of this name) on the mutant; undefined: on the sound code. */
  async try(mutant: Mutant | undefined, files: readonly string[], name?: string): Promise<Verdict> {
    const template = `rowlock_mutant_${process.pid}_${++this.#count}`
    await administer(this.#url, `create database ${template} template ${SOUND}`)
    try {
      if (mutant?.file.endsWith('.sql')) await this.#wound(template, mutant)
      process.env.ROWLOCK_TEST_TEMPLATE = template
      if (mutant !== undefined) process.env.ROWLOCK_MUTANT = JSON.stringify(mutant)
      if (mutant?.file.endsWith('.ts')) this.#vitest.invalidateFile(join(ROOT, mutant.file))
      if (name === undefined) this.#vitest.resetGlobalTestNamePattern()
      else this.#vitest.setGlobalTestNamePattern(new RegExp(`^${literal(name)}$`))
      return await this.#run(files)
    } finally {
      process.env.ROWLOCK_TEST_TEMPLATE = SOUND
      delete process.env.ROWLOCK_MUTANT
      if (mutant?.file.endsWith('.ts')) this.#vitest.invalidateFile(join(ROOT, mutant.file))
      await administer(this.#url, `drop database if exists ${template} with (force)`)
    }
  }

  async #run(files: readonly string[]): Promise<Verdict> {
    const specifications = await this.#vitest.globTestSpecifications([...files])
    const { testModules, unhandledErrors } = await this.#vitest.runTestSpecifications(specifications, false)
    const paths = files.map((file) => join(ROOT, file))
    const tests = testModules.filter(({ moduleId }) => paths.includes(moduleId)).flatMap(testsOf)
    const ran = tests.filter(({ state }) => state === 'passed' || state === 'failed')
    return {
      failed: ran.filter(({ state }) => state === 'failed').map((one) => one.name),
      ran: ran.length,
      says: unhandledErrors
        .map((error) => inspect(error))
        .join('\n')
        .slice(0, 2_000),
    }
  }

  async #wound(name: string, mutant: Mutant): Promise<void> {
    await administer(
      urlOf(this.#url, name),
      withoutGuard(readFileSync(join(ROOT, mutant.file), 'utf8'), mutant),
    )
  }
}

function testsOf(module: TestModule): { name: string; state: string }[] {
  const file = module.moduleId.replace(ROOT, '')
  return [...module.children.allTests()].map((test) => ({
    name: `${file} › ${test.fullName.replaceAll(' > ', ' ')}`,
    state: test.result().state,
  }))
}

function urlOf(server: string, name: string): string {
  const url = new URL(server)
  url.pathname = `/${name}`
  return url.href
}

async function administer(url: string, text: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(text)
  } finally {
    await client.end()
  }
}

const literal = (text: string) => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')
