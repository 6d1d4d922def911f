// What must hold after any order of statements.

import type { Outcome, Session } from './actor.ts'
import type { Scene } from './scene.ts'

const LOOK = `select
  (select coalesce(json_agg(j order by j.id), '[]') from (
     select id::text, state, attempt, failures, dedupe_key as key from rowlock.job where queue = $1) as j) as jobs,
  (select coalesce(json_agg(d.job_id::text order by d.job_id), '[]')
     from rowlock.dedupe d where d.queue = $1) as holders,
  (select count(*)::integer from rowlock.attempt a where a.job_id = $2) as attempts,
  (select coalesce(json_agg(json_build_object('id', r.id::text, 'worker', r.worker_id, 'claim', r.claim_id)), '[]')
     from rowlock.running r where r.queue = $1) as running,
  (select count(*)::integer from rowlock.cancel_request c
    where c.job_id = $2 and not exists (select from rowlock.running r where r.id = c.job_id)
      and not exists (select from rowlock.waiting w where w.id = c.job_id)
      and not exists (select from rowlock.dead_letter d where d.id = c.job_id)) as requests`

interface Seen {
  readonly jobs: readonly {
    id: string
    state: string
    attempt: number
    failures: number
    key: string | null
  }[]
  readonly holders: readonly string[]
  readonly attempts: number
  readonly running: readonly { id: string; worker: string; claim: string }[]
  readonly requests: number
}

const LIVE = ['queued', 'retryable', 'running']
const ENDINGS = ['complete', 'fail', 'snooze', 'hand back', 'abandon', 'complete in transaction', 'reap']

/** What is wrong now; nothing, when all is well. `attempt` is what the job had before. */
export async function faultsOf(
  session: Session,
  scene: Scene,
  outcomes: readonly Outcome[],
  attempt: number,
): Promise<string[]> {
  const seen = (await session.query({ name: 'look', text: LOOK }, [scene.queue, scene.id]))
    .rows[0] as unknown as Seen
  const faults: string[] = []
  const states = seen.jobs.filter(({ id }) => id === scene.id)
  const isPurged = outcomes.some(({ name, answers }) => name === 'purge' && answers !== null)
  if (states.length !== (isPurged ? 0 : 1))
    faults.push(`I1: it is there ${states.length} times: ${JSON.stringify(states)}`)
  const live = seen.jobs.filter(({ state, key }) => LIVE.includes(state) && key !== null).map(({ id }) => id)
  if (live.length > 1) faults.push(`I9: jobs ${live} live with one key`)
  if (live.join() !== seen.holders.join())
    faults.push(`I9: the key is held by [${seen.holders}], live is [${live}]`)
  const claims = outcomes.filter(({ name, answers }) => name.startsWith('claim') && took(answers, scene.id))
  if (claims.length > 1) faults.push('I3: it was claimed twice')
  const [job] = states
  if (job !== undefined && job.attempt !== attempt + claims.length) {
    faults.push(`I8: its attempt went from ${attempt} to ${job.attempt} by ${claims.length} claims`)
  }
  const ends = outcomes.filter(({ name, answers }) => ENDINGS.includes(name) && did(name, answers, scene.id))
  if (ends.length > 1) faults.push(`I3: one claim ended twice: ${ends.map(({ name }) => name)}`)
  if (seen.requests > 0 && !outcomes.some(({ name }) => name === 'cancel'))
    faults.push('I16: a request is left')
  if (job !== undefined && job.failures > job.attempt) faults.push('I7: more failures than attempts')
  return faults
}

/** Did this claim take the job? */
function took(answers: Outcome['answers'], id: string): boolean {
  const [reply] = (answers ?? []) as { jobs: [string][] }[]
  return reply?.jobs.some(([taken]) => taken === id) ?? false
}

/** Did this verb end the attempt? */
function did(name: string, answers: Outcome['answers'], id: string): boolean {
  if (answers === null) return false
  if (name === 'complete in transaction') return true
  if (name === 'reap') return (answers.at(-1) as { id: string }[]).some((moved) => moved.id === id)
  const { completed, moved } = answers[0] as { completed: string[]; moved: { id: string }[] }
  return completed.includes(id) || moved.some((one) => one.id === id)
}
