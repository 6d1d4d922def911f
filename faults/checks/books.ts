// Nothing lost, nothing made up (O1): the producers' log, the operators' log and the business rows against the end.

import type { EndJob, History, Violation } from '../history.ts'

/** Judge what was promised to those who called. */
export function books(history: History): Violation[] {
  const jobs = new Map(history.jobs.map((job) => [job.id, job]))
  return [...calls(history, jobs), ...operations(history, jobs), ...effects(history), ...keys(history, jobs)]
}

function calls(history: History, jobs: ReadonlyMap<string, EndJob>): Violation[] {
  const found: Violation[] = []
  const byRef = new Map<string, EndJob[]>()
  for (const job of jobs.values()) {
    // A retry by hand is a new job with the old one's input.
    if (job.ref === null || job.retriedFrom !== null) continue
    const list = byRef.get(job.ref)
    if (list === undefined) byRef.set(job.ref, [job])
    else list.push(job)
  }
  const asked = new Set(history.asked)
  for (const { ref, answer, id, created, inTransaction } of history.calls) {
    const stored = byRef.get(ref) ?? []
    const add = (figure: Violation['figure'], says: string) =>
      void found.push({ oracle: 'O1', figure, ...(id !== undefined && { jobId: id }), says })
    byRef.delete(ref)
    if (answer === 'ok' && !jobs.has(id!)) add('lost', `${ref} was acknowledged as job ${id} and is nowhere`)
    if (answer === 'ok' && created === true && jobs.get(id!)?.ref !== ref) {
      add('answers_broken', `${ref} was acknowledged as job ${id}, which is another`)
    }
    const most = answer === 'failed' || created === false ? 0 : 1
    if (stored.length > most) {
      const names = stored.map((job) => job.id).join(', ')
      add('phantoms', `${ref} was answered ${answer} and is stored ${stored.length} times: ${names}`)
    }
    if (!inTransaction) continue
    if (answer === 'ok' && !asked.has(ref)) add('effects_broken', `the business row of ${ref} is missing`)
    if (answer !== 'ok' && asked.has(ref) !== stored.length > 0) {
      add('effects_broken', `${ref}: of the business row and its job only one is there`)
    }
    asked.delete(ref)
  }
  for (const [ref, [job]] of byRef) {
    const says = `nobody asked for ${ref}`
    found.push({ oracle: 'O1', figure: 'phantoms', jobId: job!.id, says })
  }
  for (const ref of asked) {
    found.push({ oracle: 'O1', figure: 'phantoms', says: `nobody wrote the business row ${ref}` })
  }
  return found
}

/** What an operator was told agrees with what became of the job. */
function operations(history: History, jobs: ReadonlyMap<string, EndJob>): Violation[] {
  const redriven = new Set(history.operations.filter(({ verb }) => verb === 'redrive').map(({ id }) => id))
  return history.operations.flatMap(({ verb, id, answer }): Violation[] => {
    const state = jobs.get(id)?.state
    const allowed =
      verb !== 'cancel'
        ? undefined
        : answer === 'cancelled'
          ? ['cancelled']
          : answer === 'requested' && !redriven.has(id)
            ? ['cancelled', 'done', 'failed']
            : undefined
    if (allowed === undefined || allowed.includes(state ?? '')) return []
    const says = `cancel answered ${answer}, and it ended as ${state ?? 'nothing'}`
    return [{ oracle: 'O1', figure: 'answers_broken', jobId: id, says }]
  })
}

/** What a transactional handler wrote is there once for each of its jobs that is done, and for no other. */
function effects(history: History): Violation[] {
  const booked = new Map<string, number>()
  for (const id of history.booked) booked.set(id, (booked.get(id) ?? 0) + 1)
  return history.jobs
    .filter(({ kind }) => history.transactional.includes(kind))
    .flatMap(({ id, state }): Violation[] => {
      const times = booked.get(id) ?? 0
      const expected = state === 'done' ? 1 : 0
      if (times === expected) return []
      const says = `it is ${state}, and its transaction's row is there ${times} times`
      return [{ oracle: 'O1', figure: 'effects_broken', jobId: id, says }]
    })
}

/** No key without its live job, no live job without its key. */
function keys(history: History, jobs: ReadonlyMap<string, EndJob>): Violation[] {
  const live = ['queued', 'retryable', 'running']
  const found: Violation[] = []
  const holders = new Set<string>()
  for (const { queue, key, jobId } of history.keys) {
    const job = jobs.get(jobId)
    if (job !== undefined && live.includes(job.state) && job.dedupeKey === key && job.queue === queue) {
      holders.add(jobId)
      continue
    }
    const says = `the dedupe key ${key} outlived it: it is ${job?.state ?? 'nowhere'}`
    found.push({ oracle: 'O1', figure: 'left_open', jobId, says })
  }
  for (const { id, state, dedupeKey } of jobs.values()) {
    if (dedupeKey === null || !live.includes(state) || holders.has(id)) continue
    found.push({
      oracle: 'O1',
      figure: 'answers_broken',
      jobId: id,
      says: `its dedupe key ${dedupeKey} is free`,
    })
  }
  return found
}
