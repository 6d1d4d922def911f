import { describe, expect, it } from 'vitest'
import { type ChangeFilter, changeFilterText, filterText, type JobFilter } from '../../src/ground/filter.ts'
import { refusal } from './refusal.ts'

const wire = (filter: unknown) => JSON.parse(filterText(filter as JobFilter))
const UUID = '00000000-0000-4000-8000-000000000001'

describe('a filter', () => {
  it('is written in the words of SQL, and what is undefined is not given', () => {
    expect(
      wire({
        state: ['failed', 'scheduled'],
        queue: 'email',
        tenantId: ['a', 'b'],
        dedupeKey: 'k',
        idempotencyKey: 'i',
        retriedFrom: '42',
        workerId: UUID,
        kind: undefined,
      }),
    ).toEqual({
      state: ['failed', 'scheduled'],
      queue: 'email',
      tenant_id: ['a', 'b'],
      dedupe_key: 'k',
      idempotency_key: 'i',
      retried_from: '42',
      worker_id: UUID,
    })
    expect(wire({})).toEqual({})
    expect(wire({ all: true })).toEqual({ all: true })
  })

  it('writes dates in UTC, and leaves texts as they are, to the microsecond', () => {
    expect(wire({ enqueuedSince: new Date(0), endedUntil: '2026-01-31T12:00:00.123456+02:00' })).toEqual({
      enqueued_since: '1970-01-01T00:00:00.000Z',
      ended_until: '2026-01-31T12:00:00.123456+02:00',
    })
    expect(wire({ availableSince: '2026-01-31' })).toEqual({ available_since: '2026-01-31' })
  })

  it('writes metadata as it would be stored', () => {
    expect(wire({ metadata: { at: new Date(0), gone: undefined, n: 1 } })).toEqual({
      metadata: { at: '1970-01-01T00:00:00.000Z', n: 1 },
    })
  })

  const REFUSED: [string, unknown, string, RegExp][] = [
    ['no object', 'failed', '', /plain object/],
    ['null', null, '', /plain object/],
    ['a slip', { sate: 'failed' }, 'sate', /did you mean 'state'/],
    ['the word of SQL', { tenant_id: 'x' }, 'tenant_id', /did you mean 'tenantId'/],
    ['null where a variable was never set', { queue: null }, 'queue', /must be a string; got null/],
    ['an unknown state', { state: 'faild' }, 'state', /did you mean 'failed'/],
    ['an unknown state in a list', { state: ['done', 'ended'] }, 'state', /one of queued.*scheduled, due/],
    ['a number for a state', { state: 3 }, 'state', /must be one of/],
    ['an empty list', { kind: [] }, 'kind', /1 to 100 entries/],
    ['a long list', { kind: Array(101).fill('k') }, 'kind', /1 to 100 entries; got 101/],
    ['a hole in a list', { kind: Array(2) }, 'kind', /must be a string/],
    ['an empty text', { queue: '' }, 'queue', /must not be empty/],
    ['a long name', { queue: 'é'.repeat(51) }, 'queue', /at most 100 bytes/],
    ['a long tenant', { tenantId: 'x'.repeat(201) }, 'tenantId', /at most 200 bytes/],
    ['a long key', { dedupeKey: 'x'.repeat(513) }, 'dedupeKey', /at most 512 bytes/],
    ['NUL', { cause: 'a\0' }, 'cause', /no NUL/],
    ['half of a character', { cause: '\ud800' }, 'cause', /no lone surrogate/],
    ['a list of keys', { dedupeKey: ['a'] }, 'dedupeKey', /must be a string/],
    ['metadata that is no object', { metadata: [1] }, 'metadata', /plain object/],
    ['a worker by name', { workerId: 'host-1' }, 'workerId', /UUID/],
    ['an id as a number', { retriedFrom: 42 }, 'retriedFrom', /string of digits/],
    ['an id of 2⁶³', { retriedFrom: '9223372036854775808' }, 'retriedFrom', /string of digits/],
    ['an invalid date', { endedSince: new Date('x') }, 'endedSince', /Date or an instant/],
    ['an age', { endedSince: '2h' }, 'endedSince', /Date or an instant/],
    ['a day that is none', { endedSince: '2026-13-01' }, 'endedSince', /Date or an instant/],
    ['milliseconds', { endedSince: 0 }, 'endedSince', /Date or an instant/],
    [
      'a span that ends before it begins',
      { endedSince: '2026-02-01', endedUntil: '2026-01-01' },
      'endedUntil',
      /after endedSince/,
    ],
    ['an error of jobs that have none', { error: 'x', state: 'done' }, 'error', /dead letters/],
    ['all that is not true', { all: false }, 'all', /only be true/],
  ]
  it.each(REFUSED)('is refused with %s', (_, filter, path, message) => {
    const error = refusal(() => filterText(filter as JobFilter))
    expect(error.code).toBe('INVALID_OPTION')
    expect(error.path ?? '').toBe(path)
    expect(error.message).toMatch(message)
  })

  it('with metadata that is too large, or cannot be stored, is refused as a job with it would be', () => {
    expect(refusal(() => filterText({ metadata: { text: 'x'.repeat(5_000) } })).code).toMatch(
      /INVALID_OPTION|INPUT_TOO_LARGE/,
    )
    expect(refusal(() => filterText({ metadata: { n: 1n } })).path).toMatch(/metadata/)
  })

  it('compares an instant without an offset as UTC, wherever the process runs', () => {
    const zone = process.env.TZ
    process.env.TZ = 'Asia/Kathmandu'
    try {
      expect(wire({ endedSince: '2026-01-01T00:00:00Z', endedUntil: '2026-01-01T00:01' })).toBeDefined()
    } finally {
      if (zone === undefined) delete process.env.TZ
      else process.env.TZ = zone
    }
  })
})

describe('a filter of changes', () => {
  it('is written in the words of SQL', () => {
    expect(
      JSON.parse(changeFilterText({ jobId: '7', verb: 'run_now', actor: 'ann', since: new Date(0) })),
    ).toEqual({
      job_id: '7',
      verb: 'run_now',
      actor: 'ann',
      since: '1970-01-01T00:00:00.000Z',
    })
  })

  it.each([
    [{ jobid: '7' }, 'jobid'],
    [{ jobId: 7 }, 'jobId'],
    [{ queue: null }, 'queue'],
    [{ since: 'now' }, 'since'],
    [{ since: '2026-02-01', until: '2026-01-01' }, 'until'],
  ])('%j is refused', (filter, path) => {
    expect(refusal(() => changeFilterText(filter as unknown as ChangeFilter))).toMatchObject({
      code: 'INVALID_OPTION',
      path,
    })
  })
})
