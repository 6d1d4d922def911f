// Looking at jobs from the command line: tables that fit, whatever the data; pages; a job's whole story.

import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { widthOf } from '../../src/cli/visible.ts'
import { createRowlock, defineJob, type Rowlock } from '../../src/index.ts'
import { enqueue, type Hand, held, register, verb } from '../engine/by-hand.ts'
import { call, linesOf } from '../support/cli.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'

const HOSTILE = '\u001b[31mred\u001b[0m\u001b]0;title\u0007\r\nnext\u202eline\u0000'.replace('\u0000', '')
let db: TestRowlock
let rowlock: Rowlock
let hand: Hand
beforeAll(async () => {
  db = await rowlockDatabase('cli look')
  rowlock = createRowlock({ connectionString: db.url })
  hand = await register(db)
})
afterAll(async () => {
  await rowlock.close()
  await db.drop()
})

const run = (args: readonly string[], terminal?: number) =>
  call(args, { url: db.url, ...(terminal !== undefined && { terminal, env: { NO_COLOR: '1' } }) })

/** A dead letter of kind k in this queue. */
async function dead(queue: string, message: string, options: object = {}): Promise<string> {
  const id = await enqueue(db, { queue, max_attempts: 1, ...options })
  const { jobs } = await hand.claim({ queue })
  const error = { name: 'Error', message, stack: `at handler (${message})` }
  await verb(db, 'start', [held(jobs[0]!)])
  await verb(db, 'fail', [{ ...held(jobs[0]!), cause: 'Error', error }])
  return id
}

describe('hostile and wide data', () => {
  test('reaches a terminal as text on its line: no escape codes, no line breaks, nothing turned around', async () => {
    const id = await dead('hostile', HOSTILE, { metadata: { note: HOSTILE } })
    // Names are checked by the client; SQL that was written by hand may store anything.
    await db.sql('update rowlock.dead_letter set kind = $1, cause = $1, queue = $1 where id = $2', [
      HOSTILE,
      id,
    ])
    await rowlock.pause('hostile', { actor: HOSTILE, reason: HOSTILE })
    const looks = [
      ['jobs'],
      ['job', id],
      ['why', id],
      ['queues'],
      ['queue', 'hostile'],
      ['dead-letters'],
      ['changes'],
    ]
    expect((await run(['queue', 'hostile'], 100)).stdout).toMatch(
      /paused since .* by \\x1b\[31mred.*: \\x1b\[31mred/,
    )
    for (const args of looks) {
      const { code, stdout, stderr } = await run(args, 100)
      expect(code, args.join(' ')).toBe(0)
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
      expect(stdout + stderr, args.join(' ')).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/)
    }
    expect((await run(['jobs'], 200)).stdout).toContain('\\x1b[31mred\\x1b[0m')
    const { stdout } = await run(['jobs', '--json'])
    expect(linesOf(stdout).find((job) => job.id === id).kind).toBe(HOSTILE)
  })

  test('a group of dead letters is redriven by what is printed, even when its error cannot be typed', async () => {
    const { stdout } = await run(['dead-letters'], 100)
    expect(stdout).toMatch(/→ rowlock redrive --queue \$'\\u001b\[31mred\\u001b/)
  })

  test.each([60, 80, 120, 200])('every list fits %i columns, with wide characters too', async (columns) => {
    const id = await dead(
      '国際的な待ち行列',
      'エラーが発生しました: 接続が拒否されました 👩‍👩‍👧‍👦 '.repeat(5),
    )
    await db.sql(
      `update rowlock.dead_letter set kind = '名前付きの仕事をとても長い名前で実行する', tenant_id = '企業' where id = $1`,
      [id],
    )
    for (const args of [['jobs'], ['queues'], ['workers'], ['changes'], ['job', id], ['why', id], ['bulk']]) {
      const { stdout } = await run(args, columns)
      const wide = stdout.split('\n').filter((line) => widthOf(line) > columns)
      // What is not cut is an id, a state, a number: at 60 columns they may need more.
      if (columns >= 80) expect(wide, args.join(' ')).toEqual([])
      expect(stdout, args.join(' ')).not.toContain('undefined')
    }
  })
})

describe('rowlock jobs', () => {
  test('pages by what it says to type, and says when there is nothing', async () => {
    const job = defineJob<number>('paged', { queue: 'paged' })
    const made = await rowlock.enqueueMany(Array.from({ length: 5 }, (_, n) => job.with(n)))
    const ids = made.map(({ id }) => id).reverse()
    const first = await run(['jobs', '--queue', 'paged', '--limit', '2', '--json'])
    expect(linesOf(first.stdout).map(({ id }) => id)).toEqual(ids.slice(0, 2))
    const [, next] = /older ones: rowlock (.*)\n/.exec(first.stderr)!
    const second = await run(next!.split(' '))
    expect(linesOf(second.stdout).map(({ id }) => id)).toEqual(ids.slice(2, 4))
    const all = await run(['jobs', '--queue', 'paged', '--limit', '2', '--all-pages', '--json'])
    expect([linesOf(all.stdout).length, all.stderr]).toEqual([5, ''])
    const none = await run(['jobs', '--queue', 'nowhere'])
    expect(none).toEqual({
      code: 0,
      stdout: '',
      stderr: 'no job matches\nrowlock: nothing has the queue "nowhere"\n',
      exits: [],
    })
  })

  test('Ctrl-C ends a list between two pages, and where to go on is said', async () => {
    const job = defineJob<number>('long', { queue: 'long' })
    await rowlock.enqueueMany(Array.from({ length: 1_100 }, (_, n) => job.with(n)))
    const ended = await call(['jobs', '--queue', 'long', '--all-pages', '--json'], {
      url: db.url,
      onData: (_, { interrupt }) => interrupt(),
    })
    expect([ended.code, linesOf(ended.stdout).length]).toEqual([130, 1_000])
    const [, next] = /^1,000 jobs shown; older ones: rowlock (.*)\n$/.exec(ended.stderr)!
    expect(linesOf((await run(next!.split(' '))).stdout)).toHaveLength(100)
  })

  test('--json has the shape of the library', async () => {
    const { stdout } = await run(['jobs', '--state', 'dead_letter', '--limit', '1', '--json'])
    const { jobs } = await rowlock.jobs({ state: 'dead_letter' }, { limit: 1 })
    expect(linesOf(stdout)).toEqual(JSON.parse(JSON.stringify(jobs)))
  })
})

describe('rowlock job', () => {
  test('finds a job by its keys and metadata, and lists several', async () => {
    const id = await enqueue(db, { queue: 'keys', dedupe_key: 'order 1', metadata: { order: 1, shop: 'a' } })
    const other = await enqueue(db, {
      queue: 'keys',
      idempotency_key: 'i-2',
      metadata: { order: 2, shop: 'a' },
    })
    const found = async (...args: string[]) => linesOf((await run(['job', ...args, '--json'])).stdout)
    expect(await found('--dedupe-key', 'order 1', '--queue', 'keys')).toMatchObject([
      { id, story: [{ event: 'enqueued' }, {}] },
    ])
    expect(await found('--idempotency-key', 'i-2')).toMatchObject([{ id: other }])
    expect(await found('--metadata', '{"order":1}')).toMatchObject([{ id, input: {} }])
    expect((await found('--metadata', '{"shop":"a"}')).map((job) => job.id)).toEqual([other, id])
    const several = await run(['job', '--metadata', '{"shop":"a"}'])
    expect(several).toMatchObject({ code: 0, stderr: '2 jobs match; rowlock job <id> shows one\n' })
    expect(await run(['job', '--dedupe-key', 'none'])).toMatchObject({ code: 3, stdout: '' })
    expect(await run(['job', '999999'])).toMatchObject({
      code: 3,
      stderr: expect.stringMatching(/no job 999999/),
    })
  })

  test('tells its whole story: attempts with worker, cause and error, and who changed what', async () => {
    const id = await dead('story', 'no such customer')
    await rowlock.redrive(id, { actor: 'ana', reason: 'customer restored' })
    await rowlock.prioritize(id, 5, { actor: 'bo' })
    const { stdout } = await run(['job', id], 100)
    const told = [
      /enqueued/,
      /try 1 +claimed/,
      /try 1 +started/,
      /failed +Error: no such customer/,
      /redrive +by ana, “customer restored”/,
      /prioritize +by bo/,
    ]
    let at = 0
    for (const line of told) {
      const found = stdout.slice(at).search(line)
      expect(found, String(line)).toBeGreaterThanOrEqual(0)
      at += found
    }
    expect(stdout).toMatch(/last error\n {2}Error: no such customer\n/)
  })
})

test('dead letters are grouped, and the command below a group redrives that group and no other', async () => {
  const [a, b] = [await dead('groups', 'timeout after 100 ms'), await dead('groups', 'timeout after 2000 ms')]
  const other = await dead('groups', `can't find it`)
  const { stdout } = await run(['dead-letters', '--queue', 'groups'], 100)
  expect(stdout).toMatch(/^ *2 +groups +k +Error/m)
  const commands = [...stdout.matchAll(/→ rowlock (.*)/g)].map(([, command]) => command!)
  expect(commands).toEqual([
    expect.stringMatching(/^redrive --queue groups --kind k --cause Error --error 'timeout after #/),
    `redrive --queue groups --kind k --cause Error --error 'can'\\''t find it'`,
  ])
  const words = commands[0]!.match(/'[^']*'|\S+/g)!.map((word) => word.replaceAll("'", ''))
  expect(await run([...words, '--yes', '--json'])).toMatchObject({ code: 0 })
  const states = await Promise.all([a, b, other].map(async (id) => (await rowlock.job(id))!.state))
  expect(states).toEqual([states[0], states[0], 'dead_letter'])
  expect(states[0]).not.toBe('dead_letter')
})

test('a schema that is not there is answered with what to type', async () => {
  const ended = await call(['queues', '--schema', 'elsewhere'], { url: db.url })
  expect(ended).toMatchObject({ code: 1, stdout: '' })
  expect(ended.stderr).toMatch(/run `rowlock migrate`.*Looked in schema "elsewhere"/s)
})

test('a role without rights is told which grant is missing', async () => {
  // Roles are of the whole server, which other runs may share.
  const looker = `looker_${randomBytes(5).toString('hex')}`
  await db.sql(`create role ${looker} login password 'plain'`)
  try {
    const url = new URL(db.url)
    url.username = looker
    url.password = 'plain'
    const ask = (...args: string[]) => call(args, { url: url.href })
    /** What stderr says to type, typed. */
    const grant = async (stderr: string) => {
      const [, block] = /its owner grants with:\n((?: {4}.*\n)+)/.exec(stderr)!
      await db.sql(block!)
    }
    const first = await ask('queues')
    expect(first).toMatchObject({ code: 1, stderr: expect.stringContaining('What a viewer needs') })
    await db.sql(`grant usage on schema rowlock to ${looker}`)
    const second = await ask('why', '1')
    expect(second.stderr).toContain('What a viewer needs')
    await grant(second.stderr)
    expect(await ask('why', '999999')).toMatchObject({ code: 3 })
    const third = await ask('cancel', '999999')
    expect(third.stderr).toContain('What an operator needs')
    await grant(third.stderr)
    expect(await ask('cancel', '999999')).toMatchObject({ code: 3 })
    const fourth = await ask('enqueue', 'k')
    expect(fourth.stderr).toContain('What a producer needs')
    await grant(fourth.stderr)
    expect(await ask('enqueue', 'k')).toMatchObject({ code: 0 })
    const migrated = await ask('migrate')
    expect(migrated.stderr).toMatch(/Migrate as the role that owns schema rowlock|permission/)
    expect(first.stderr + second.stderr + third.stderr + fourth.stderr).not.toContain('plain')
  } finally {
    await db.sql(`drop owned by ${looker}; drop role ${looker}`)
  }
})

describe('rowlock queues', () => {
  test('marks what is late without colours too, lists it first, and shows nothing as a dot', async () => {
    await enqueue(db, { queue: 'zz-late' })
    await db.sql(
      `update rowlock.waiting set available_at = available_at - interval '1 hour' where queue = 'zz-late'`,
    )
    const { stdout } = await run(['queues'], 80)
    const [head, first] = stdout.split('\n')
    expect(head).toMatch(/^QUEUE .*DUE +OLDEST +TARGET +RUNNING/)
    expect(first).toMatch(/^zz-late +1 +1h! +1m +·/)
    await db.sql(`delete from rowlock.waiting where queue = 'zz-late'`)
  })
})

describe('what has no room in a row stands below it', () => {
  test('of a bulk change what it is for, as it is typed', async () => {
    await rowlock.enqueue(defineJob<null>('sync', { queue: 'erp' }), null, {
      delay: '1h',
      metadata: { run: 'november' },
    })
    const reason = 'the import of november was wrong from its first line on'
    const filter = { queue: 'erp', metadata: { run: 'november' } }
    const { id } = await rowlock.bulk('cancel', filter, { actor: 'ada', reason })
    const flags = `--queue erp --metadata '{"run":"november"}'`
    const changes = await run(['changes', '--verb', 'bulk'], 80)
    expect(changes.stdout).toContain(`\n    bulk change ${id}: cancel, 1 job: ${flags}\n`)
    expect((await run(['bulk'], 80)).stdout).toContain(`\n    ${flags}\n`)
    for (const args of [
      ['bulk', 'show', id],
      ['bulk', id],
    ]) {
      const { code, stdout } = await run(args, 80)
      expect(code).toBe(0)
      expect(stdout).toMatch(new RegExp(`^bulk change ${id}  open  cancel\n`))
      expect(stdout).toContain(flags)
      expect(stdout).toContain(`rowlock bulk resume ${id}`)
    }
    expect(linesOf((await run(['bulk', id, '--json'])).stdout)).toMatchObject([
      { id, verb: 'cancel', filter },
    ])
    await rowlock.openBulk(id).then((bulk) => bulk.stop())
    expect(await run(['bulk', '99999'])).toMatchObject({ code: 3 })
  })
})

test('what a reason proposes to type stands on a line of its own, and can be typed', async () => {
  const id = await enqueue(db, { queue: 'typed' })
  await rowlock.pause('typed', { actor: 'ada', reason: 'a look' })
  const { stdout } = await run(['why', id], 80)
  expect(stdout).toMatch(/^paused: .*a look/)
  const [, command] = /^ {4}rowlock (resume typed)\b/m.exec(stdout)!
  expect(await run(command!.split(' '))).toMatchObject({ code: 0 })
  expect(
    stdout.split('\n').filter((line) => /\S.*rowlock resume/.test(line.replace(/^ {4}rowlock/, ''))),
  ).toEqual([])
})

test('a name that nothing has is answered with the nearest known one', async () => {
  await rowlock.enqueue(defineJob<null>('invoice', { queue: 'nearby' }), null)
  for (const args of [['jobs'], ['cancel', '--yes'], ['cancel', '--dry-run']]) {
    const { code, stderr } = await run([...args, '--queue', 'nearyb', '--kind', 'invioce'])
    expect(code).toBe(0)
    expect(stderr).toContain('nothing has the queue "nearyb"; did you mean "nearby"?\n')
    expect(stderr).toContain('nothing has the kind "invioce"; did you mean "invoice"?\n')
  }
  expect((await run(['dead-letters', '--queue', 'nearyb'])).stderr).toContain('did you mean "nearby"')
  expect((await run(['changes', '--queue', 'nearyb'])).stderr).toContain('did you mean "nearby"')
})

test('a job that is claimed is claimed, until a beat says what has become of it', async () => {
  const id = await enqueue(db, { queue: 'claimed' })
  const { jobs } = await hand.claim({ queue: 'claimed' })
  expect((await run(['jobs', '--queue', 'claimed'], 100)).stdout).toMatch(
    new RegExp(`${id} +running .* claimed \\d+`),
  )
  await verb(db, 'start', [held(jobs[0]!)])
  expect((await run(['jobs', '--queue', 'claimed'], 100)).stdout).toMatch(/ for \d+/)
  await verb(db, 'complete', [held(jobs[0]!)])
})
