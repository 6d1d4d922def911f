// The scenes that verbs meet in: one job with a dedupe key, in each of its states, and what may be done to it.

import { randomUUID } from 'node:crypto'
import type { Act, Session } from './actor.ts'

/** A job, its claim, and two workers: the first holds it while it runs. */
export interface Scene {
  readonly id: string
  readonly claimId: string
  readonly workers: readonly [string, string]
  readonly queue: string
  readonly key: string
}

/** Where the job stands when the actors begin. */
export type Stand = 'waiting' | 'running' | 'dead' | 'ended'

let scenes = 0

/** A new job alone in its queue. */
export async function makeScene(session: Session, stand: Stand): Promise<Scene> {
  const queue = `scene${++scenes}`
  const workers = [randomUUID(), randomUUID()] as const
  const key = 'key'
  for (const worker of workers) {
    await session.query(`select rowlock.register($1, '1 hour', '{"name": "actor"}')`, [worker])
  }
  const { rows } = await session.query(
    `select id::text from rowlock.enqueue('k', '{}', jsonb_build_object('queue', $1::text, 'dedupe_key', $2::text,
       'max_attempts', case when $3::boolean then 1 else 3 end, 'backoff', '{"type": "fixed", "delay_ms": 0}'::jsonb))`,
    [queue, key, stand === 'dead'],
  )
  const id = String(rows[0]!.id)
  let claimId: string = randomUUID()
  if (stand !== 'waiting') {
    claimId = (await claim(workers[0], queue)(session)).claim_id
    if (stand === 'dead') await ended('fail', id, claimId)(session)
    if (stand === 'ended') await ended('complete', id, claimId)(session)
  }
  return { id, claimId, workers, queue, key }
}

type Statement = (session: Session) => Promise<unknown>
const say =
  (text: string, ...values: unknown[]): Statement =>
  async (session) =>
    (await session.query(`select to_json(${text}) as reply`, values)).rows[0]!.reply

const claim = (worker: string, queue: string) => async (session: Session) => {
  const wants = JSON.stringify([{ queue, limit: 10, kinds: ['k'] }])
  return (await say('rowlock.claim($1, $2)', worker, wants)(session)) as { jobs: unknown[]; claim_id: string }
}

function ended(verb: string, id: string, claimId: string): Statement {
  const pair = [{ id, claim_id: claimId, cause: 'Error', after_ms: 0, ran_ms: 5 }]
  return say('rowlock.finish($1)', JSON.stringify({ [verb]: pair }))
}

/** What may be done to the job in a scene: workers' verbs, operators' verbs, producers'. */
export const VERBS: Readonly<Record<string, (scene: Scene) => readonly Statement[]>> = {
  'claim by one': ({ workers, queue }) => [claim(workers[0], queue)],
  'claim by another': ({ workers, queue }) => [claim(workers[1], queue)],
  start: ({ id, claimId }) => [
    say('rowlock.start($1)', JSON.stringify([{ id, claim_id: claimId, ago_ms: 5 }])),
  ],
  heartbeat: ({ id, claimId, workers }) => [
    say('rowlock.heartbeat($1, $2)', workers[0], JSON.stringify([{ id, claim_id: claimId }])),
  ],
  complete: ({ id, claimId }) => [ended('complete', id, claimId)],
  fail: ({ id, claimId }) => [ended('fail', id, claimId)],
  snooze: ({ id, claimId }) => [ended('snooze', id, claimId)],
  'hand back': ({ id, claimId }) => [ended('hand_back', id, claimId)],
  abandon: ({ id, claimId }) => [ended('abandon', id, claimId)],
  'complete in transaction': ({ id, claimId }) => [
    say('rowlock.hold($1, $2)', id, claimId),
    say('rowlock.start($1)', JSON.stringify([{ id, claim_id: claimId, in_transaction: true }])),
    say('rowlock.complete_in_transaction($1, $2)', id, claimId),
  ],
  reap: ({ workers }) => [
    (session) =>
      session.query('update rowlock.worker set expires_at = rowlock.now() where id = $1', [workers[0]]),
    say('rowlock.reap()'),
  ],
  retire: ({ workers }) => [say('rowlock.retire($1)', workers[0])],
  cancel: ({ id }) => [say('rowlock.cancel($1)', id)],
  'run now': ({ id }) => [say('rowlock.run_now($1)', id)],
  prioritize: ({ id }) => [say('rowlock.prioritize($1, 5)', id)],
  redrive: ({ id }) => [say('rowlock.redrive($1)', id)],
  discard: ({ id }) => [say('rowlock.discard($1)', id)],
  retry: ({ id }) => [say('rowlock.retry($1)', id)],
  purge: ({ id }) => [say('rowlock.purge($1)', id)],
  sweep: () => [say('rowlock.sweep()')],
  'enqueue with the key': ({ queue, key }) => [
    say(
      `(select e from rowlock.enqueue('k', '{}', jsonb_build_object('queue', $1::text, 'dedupe_key', $2::text)) as e)`,
      queue,
      key,
    ),
  ],
}

/** Which of them may meet where: those that apply, and those that must do nothing. */
export const MEETINGS: Readonly<Record<Stand, readonly string[]>> = {
  waiting: [
    'claim by one',
    'claim by another',
    'cancel',
    'run now',
    'prioritize',
    'enqueue with the key',
    'retire',
  ],
  running: [
    'complete',
    'fail',
    'snooze',
    'hand back',
    'abandon',
    'complete in transaction',
    'reap',
    'heartbeat',
    'start',
    'cancel',
    'sweep',
    'enqueue with the key',
  ],
  dead: ['redrive', 'discard', 'cancel', 'enqueue with the key', 'sweep'],
  ended: ['retry', 'purge', 'cancel', 'enqueue with the key', 'complete'],
}

/** The verb as a transaction of its own. */
export function actOf(name: string, scene: Scene, end: Act['end'] = 'commit'): Act {
  return { name: end === 'commit' ? name : `${name}, rolled back`, statements: VERBS[name]!(scene), end }
}
