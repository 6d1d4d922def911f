// Changing jobs from the command line: by ids and by filter, asked about first, answered for each job.

import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { Bulk } from '../../src/engine/bulk.ts'
import { RowlockError } from '../../src/ground/errors.ts'
import { createRowlock, defineJob, type Rowlock } from '../../src/index.ts'
import { type CallOptions, call, linesOf } from '../support/cli.ts'
import { rowlockDatabase, type TestRowlock } from '../support/database.ts'

const mail = defineJob<number>('mail', { queue: 'mail' })
let db: TestRowlock
let rowlock: Rowlock
beforeAll(async () => {
  db = await rowlockDatabase('cli change')
  rowlock = createRowlock({ connectionString: db.url })
})
afterAll(async () => {
  await rowlock.close()
  await db.drop()
})
beforeEach(async () => {
  await db.sql('truncate rowlock.waiting, rowlock.audit, rowlock.bulk, rowlock.finished')
})

const run = (args: readonly string[], options: CallOptions = {}) => call(args, { url: db.url, ...options })
const enqueue = async (n: number) =>
  (await rowlock.enqueueMany(Array.from({ length: n }, (_, i) => mail.with(i, { delay: '1h' })))).map(
    ({ id }) => id,
  )
const waiting = () => db.value<number>('select count(*)::integer from rowlock.waiting')

describe('by ids', () => {
  test('each job has an answer; refusals are grouped, and the exit code says that some were not changed', async () => {
    const [a, b] = await enqueue(2)
    await rowlock.cancel(b!)
    const ended = await run(['run-now', a!, b!, '999999', '--yes'])
    expect(ended).toMatchObject({
      code: 4,
      stdout: `${a}  due\n${b}  wrong_state (it is cancelled)\n999999  not_found\n`,
    })
    expect(ended.stderr).toBe('1 due; 2 not changed: 1 wrong_state (cancelled), 1 not_found\n')
  })

  test('--json answers NDJSON, in the words of the library', async () => {
    const ids = await enqueue(2)
    const { code, stdout } = await run(['prioritize', '-5', ...ids, '999999', '--json', '--yes'])
    expect(code).toBe(4)
    expect(linesOf(stdout)).toEqual([
      { id: ids[0], answer: 'prioritized', detail: null },
      { id: ids[1], answer: 'prioritized', detail: null },
      { id: '999999', answer: 'not_found', detail: null },
    ])
    expect((await rowlock.job(ids[0]!))?.priority).toBe(-5)
  })

  test('an unknown job alone is exit code 3', async () => {
    expect(await run(['cancel', '999999'])).toMatchObject({
      code: 3,
      stdout: '999999  not_found\n',
      stderr: '',
    })
  })

  test('- reads ids from stdin: lines, NDJSON, each once', async () => {
    const [a, b, c] = await enqueue(3)
    const input = `${a}\n\n{"id":"${b}","state":"queued"}\r\n{"id":${c}}\n${a}\n`
    const { code, stdout } = await run(['run-now', '-', '--yes'], { input })
    expect([code, stdout]).toEqual([0, `${a}  due\n${b}  due\n${c}  due\n`])
  })

  test('a line of stdin that is no id changes nothing, and is named', async () => {
    const [a] = await enqueue(1)
    const ended = await run(['cancel', '-'], { input: `${a}\nfourty-two\n` })
    expect(ended).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(/line 2 .*"fourty-two"; nothing/),
    })
    expect(await waiting()).toBe(1)
  })

  test('what ends several jobs is asked about, and without a terminal refused with what to type', async () => {
    const ids = await enqueue(2)
    const refused = await run(['cancel', ...ids, '--reason', `it's over`])
    expect(refused).toMatchObject({ code: 2, stdout: '' })
    expect(refused.stderr).toContain(`rowlock cancel ${ids.join(' ')} --reason 'it'\\''s over' --yes\n`)
    for (const input of ['no\n', '\n', 'perhaps\nn\n']) {
      const declined = await run(['cancel', ...ids], { terminal: 80, input })
      expect(declined).toMatchObject({
        code: 130,
        stdout: '',
        stderr: expect.stringMatching(/cancel 2 jobs\?.*nothing was changed/s),
      })
    }
    expect(await waiting()).toBe(2)
    expect(await run(['cancel', ...ids], { terminal: 80, input: 'yes\n' })).toMatchObject({ code: 0 })
    expect(await waiting()).toBe(0)
    // One job that was named is not asked about.
    expect(await run(['retry', ids[0]!])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/retried \(as job \d+\)/),
    })
    expect(await run(['purge', ids[0]!])).toMatchObject({ code: 0, stdout: `${ids[0]}  purged\n` })
  })

  test.each(['cancel', 'retry', 'run-now', 'prioritize', 'redrive', 'discard', 'purge'])(
    '%s asks about more than one id, and about no more than that',
    async (verb) => {
      const words = verb === 'prioritize' ? [verb, '5'] : [verb]
      const refused = await run([...words, '999998', '999999'])
      expect(refused).toMatchObject({
        code: 2,
        stdout: '',
        stderr: expect.stringMatching(/no terminal to ask/),
      })
      expect(await run([...words, '999999'])).toMatchObject({ code: 3, stdout: '999999  not_found\n' })
    },
  )

  test('Ctrl-C and Ctrl-D at the question change nothing, say so on a line of their own, and exit 130', async () => {
    const ids = await enqueue(2)
    const env = { NO_COLOR: '1' }
    const interrupted = await run(['cancel', ...ids], {
      terminal: 80,
      env,
      onTalk: (text, { interrupt }) => text.includes('[y/N]') && interrupt(),
    })
    const ended = await run(['cancel', ...ids], { terminal: 80, env, end: true })
    for (const call of [interrupted, ended]) {
      expect(call).toMatchObject({
        code: 130,
        stdout: '',
        stderr: 'cancel 2 jobs? [y/N] \nnothing was changed\n',
      })
    }
    expect(await waiting()).toBe(2)
  })

  test('Ctrl-C among ids ends between two calls, and says how many were not looked at', async () => {
    const ids = await enqueue(600)
    const ended = await run(['cancel', '-', '--yes'], {
      input: ids.join('\n'),
      onData: (_, { interrupt }) => interrupt(),
    })
    expect(ended).toMatchObject({ code: 130, exits: [] })
    expect(ended.stderr).toMatch(/500 cancelled\n.*interrupted: 100 jobs were not looked at/s)
    expect(await waiting()).toBe(100)
  })

  test('who and why is kept: options, ROWLOCK_ACTOR, or the user of the system', async () => {
    const [a, b, c] = await enqueue(3)
    await run(['run-now', a!, '--actor', 'eve', '--reason', 'hurry'])
    await run(['run-now', b!], { env: { ROWLOCK_ACTOR: 'deploy' } })
    await run(['run-now', c!])
    const { stdout } = await run(['changes', '--verb', 'run_now', '--json'])
    expect(linesOf(stdout).map(({ jobId, actor, reason }) => [jobId, actor, reason])).toEqual([
      [c, 'ada@test', null],
      [b, 'deploy', null],
      [a, 'eve', 'hurry'],
    ])
  })
})

describe('by filter', () => {
  test('is counted and shown, asked about, done in steps, and summed up', async () => {
    await enqueue(12)
    const asked = await run(['cancel', '--queue', 'mail'], {
      terminal: 80,
      input: 'y\n',
      env: { NO_COLOR: '1' },
    })
    expect(asked).toMatchObject({ code: 0, stdout: '' })
    expect(asked.stderr).toMatch(
      /^12 jobs, the newest of them:\n *ID +STATE .*cancel 12 jobs\? \[y\/N\] .*12 changed \(bulk change 1\)/s,
    )
    expect(await waiting()).toBe(0)
    expect(await run(['bulk'])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/1 +done +cancel .*\n +--queue mail\n/),
    })
  })

  test('without a terminal it wants --yes; --dry-run changes nothing; no match is said', async () => {
    await enqueue(2)
    const refused = await run(['cancel', '--queue', 'mail'])
    expect(refused).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('rowlock cancel --queue mail --yes\n'),
    })
    expect(await run(['cancel', '--all', '--dry-run'])).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/would cancel 2 jobs; nothing was changed/),
    })
    const dry = await run(['cancel', '--kind', 'mail', '--dry-run', '--json'])
    expect(linesOf(dry.stdout)).toEqual([
      { verb: 'cancel', count: 2, about: false, sample: [expect.anything(), expect.anything()] },
    ])
    expect(await run(['redrive', '--queue', 'mail', '--yes'])).toMatchObject({
      code: 0,
      stderr: 'no job matches that redrive applies to; nothing was changed\n',
    })
    expect(await waiting()).toBe(2)
    expect(await db.value('select count(*)::integer from rowlock.bulk')).toBe(0)
  })

  test('a count that saw none and did not look at all is not taken for none', async () => {
    await enqueue(3)
    const real = await db.value<string>(`select pg_get_functiondef('rowlock.count_jobs'::regproc)`)
    await db.sql(`
      create or replace function rowlock.count_jobs(p_filter jsonb default '{}') returns jsonb
      language sql stable as 'select jsonb_build_object(''count'', 0, ''about'', true)'`)
    try {
      const dry = await run(['cancel', '--queue', 'mail', '--dry-run'])
      expect(dry.stderr).toMatch(/at least 0 jobs: there are too many to count to the end/)
      expect(dry.stderr).toMatch(/would cancel an uncounted number of jobs; nothing was changed/)
      expect(await run(['cancel', '--queue', 'mail', '--yes'])).toMatchObject({
        code: 0,
        stderr: expect.stringMatching(/^3 changed/m),
      })
      expect((await run(['bulk'])).stdout).toMatch(/not counted +3/)
    } finally {
      await db.sql(real)
    }
    expect(await waiting()).toBe(0)
  })

  test('of jobs that were left as they are up to 20 are named, with what to ask', async () => {
    const key = (n: number) => ({ delay: '1h', dedupeKey: `k${n}` }) as const
    const ids: string[] = []
    for (let n = 0; n < 22; n++) {
      const { id } = await rowlock.enqueue(mail, n, key(n))
      await rowlock.cancel(id)
      await rowlock.enqueue(mail, n, key(n))
      ids.push(id)
    }
    const ended = await run(['retry', '--state', 'cancelled', '--queue', 'mail', '--yes'])
    expect(ended).toMatchObject({ code: 4, stdout: '' })
    expect(ended.stderr).toMatch(/22 not changed: 22 dedupe_key_taken/)
    const named = [...ended.stderr.matchAll(/^ {2}(\d+) {2}dedupe_key_taken .*: rowlock why \1$/gm)].map(
      ([, id]) => id,
    )
    expect(named).toEqual(ids.slice(0, 20))
    expect(ended.stderr).toMatch(/… and 2 jobs more\n$/)
    await db.sql('delete from rowlock.dedupe')
  })

  test('a connection that is lost in a step is answered with how to go on, and with nothing else', async () => {
    await enqueue(3)
    const lost = new RowlockError('OUTCOME_UNKNOWN', 'whether it was done is not known')
    const run = vi.spyOn(Bulk.prototype, 'run').mockRejectedValueOnce(lost)
    const ended = await call(['cancel', '--queue', 'mail', '--yes'], { url: db.url })
    run.mockRestore()
    expect(ended).toMatchObject({ code: 5, stdout: '' })
    expect(ended.stderr).toMatch(
      /0 changed at least\. No job is changed twice by going on\.\nTo go on: rowlock bulk resume/,
    )
    expect(ended.stderr).not.toMatch(/Look before you repeat/)
  })

  test('the same change is not begun beside one that has not ended, unless it is said', async () => {
    const { id } = await rowlock.bulk('cancel', { queue: 'mail' })
    await enqueue(2)
    const refused = await run(['cancel', '--queue', 'mail', '--yes'])
    expect(refused).toMatchObject({ code: 4, stdout: '' })
    expect(refused.stderr).toMatch(
      new RegExp(`bulk change ${id} is the same and has not ended; nothing was changed \\[BULK_OPEN\\]`),
    )
    expect(refused.stderr).toContain(`rowlock bulk resume ${id}`)
    expect(await waiting()).toBe(2)
    expect(await run(['cancel', '--queue', 'mail', '--yes', '--anew'])).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/^2 changed/m),
    })
  })

  test('run-now is of what is not due yet, and its states go without saying', async () => {
    await enqueue(2)
    await rowlock.enqueue(mail, 9)
    const dry = await run(['run-now', '--queue', 'mail', '--dry-run'])
    expect(dry.stderr).toMatch(/would run-now 2 jobs; nothing was changed/)
    expect(await run(['run-now', '--queue', 'mail', '--yes'])).toMatchObject({ code: 0 })
    const { stdout } = await run(['bulk'])
    expect(stdout).toMatch(/run_now +2 +2 /)
    expect(stdout).toMatch(/--queue mail$/m)
  })

  test('--json answers each job on stdout, and nothing else', async () => {
    const ids = await enqueue(3)
    const { code, stdout } = await run(['run-now', '--state', 'scheduled', '--yes', '--json'])
    expect(code).toBe(0)
    expect(linesOf(stdout)).toEqual(ids.map((id) => ({ id, answer: 'due', detail: null })))
  })

  test('interrupted, it finishes its step, says how far it got, and goes on where it stopped', async () => {
    await enqueue(1_200)
    let isOver = false
    const first = await run(['cancel', '--queue', 'mail', '--yes'], {
      terminal: 100,
      env: { NO_COLOR: '1' },
      onTalk(text, { interrupt }) {
        if (isOver || !text.includes(' of 1,200 jobs')) return
        isOver = true
        interrupt()
      },
    })
    expect(first).toMatchObject({ code: 130, stdout: '', exits: [] })
    expect(first.stderr).toMatch(/interrupted after 500 changed, of 1,200 jobs \(bulk change (\d+)\)/)
    expect(first.stderr).toMatch(/the running step is being finished; Ctrl-C again ends at once/)
    const [, n] = /To go on: rowlock bulk resume (\d+)\. To leave it at that: rowlock bulk stop \1/.exec(
      first.stderr,
    )!
    expect(await waiting()).toBe(700)
    expect(await run(['bulk', 'resume', n!])).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/1,200 changed/),
    })
    expect(await waiting()).toBe(0)
    expect(await run(['bulk', 'resume', n!])).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/is over \(done\)/),
    })
    expect(await run(['bulk', 'resume', '999'])).toMatchObject({ code: 3 })
  })

  test('a second Ctrl-C ends at once', async () => {
    await enqueue(1_200)
    const { exits } = await run(['cancel', '--queue', 'mail', '--yes'], {
      terminal: 100,
      onTalk(text, { interrupt }) {
        if (text.includes('Ctrl-C again')) interrupt()
        else if (text.includes(' of 1,200 jobs')) interrupt('SIGTERM')
      },
    })
    expect(exits).toContain(130)
  })

  test('one that was stopped by somebody else says so', async () => {
    await enqueue(3)
    const bulk = await rowlock.bulk('cancel', { queue: 'mail' })
    const stopped = await run(['bulk', 'stop', bulk.id, '--reason', 'wrong queue'])
    expect(stopped).toMatchObject({ code: 0, stdout: `bulk change ${bulk.id} is stopped: 0 changed\n` })
    expect(await run(['bulk', 'stop', bulk.id])).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/over already/),
    })
    expect(await waiting()).toBe(3)
  })
})

test('a queue that is nearly a known one is refused unless it is meant; any other may be new', async () => {
  await enqueue(1)
  const env = { NO_COLOR: '1' }
  for (const args of [
    ['pause', 'mial'],
    ['resume', 'mial'],
    ['queue', 'mial', '--concurrency', '3'],
  ]) {
    const refused = await run(args, { env })
    expect(refused, args[0]).toMatchObject({ code: 2, stdout: '' })
    expect(refused.stderr).toMatch(/names the queue "mial"; did you mean "mail"\?/)
    expect(refused.stderr).toContain(
      `Nothing was changed. If "mial" is meant: rowlock ${args.join(' ')} --yes\n`,
    )
  }
  expect(await db.sql('select from rowlock.queue')).toEqual([])
  expect(await run(['pause', 'mial', '--yes'], { env })).toMatchObject({
    code: 0,
    stdout: 'mial is paused\n',
  })
  await run(['pause', 'shard-1'], { env })
  expect(await run(['pause', 'shard-2'], { env })).toMatchObject({ code: 0, stdout: 'shard-2 is paused\n' })
  const fresh = await run(['pause', 'invoices'], { env })
  expect(fresh).toMatchObject({ code: 0, stdout: 'invoices is paused\n' })
  expect(fresh.stderr).toMatch(/names the queue "invoices"/)
  expect(await run(['pause', 'mail'])).toMatchObject({ code: 0, stdout: 'mail is paused\n', stderr: '' })
  expect(await run(['pause', 'mail', '--json'])).toMatchObject({
    stdout: '{"queue":"mail","paused":true,"changed":false}\n',
  })
  expect(await run(['resume', 'mail'])).toMatchObject({ code: 0, stdout: 'mail is claimed again\n' })
  expect(
    await run(['queue', 'mail', '--concurrency', '3', '--retention-days', '30d', '--json']),
  ).toMatchObject({
    code: 0,
  })
  const { stdout } = await run(['queue', 'mail', '--concurrency', 'none', '--target-wait', '2m', '--json'])
  expect(linesOf(stdout)[0]).toMatchObject({
    queue: 'mail',
    concurrency: null,
    retentionDays: 30,
    targetWaitMs: 120_000,
  })
  expect(await run(['queue', 'maill'])).toMatchObject({
    code: 3,
    stderr: expect.stringMatching(/did you mean "mail"/),
  })
})
