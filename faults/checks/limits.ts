// Limits hold (O5): handlers of one queue that run at once in one process, by what they wrote; and nothing is claimed
// of a queue that is paused.

import type { History, Pause, Violation } from '../history.ts'
import type { Lives } from './walk.ts'

interface Edge {
  readonly at: number
  readonly by: 1 | -1
  readonly jobId: string
}

/** A call that never wrote its end counts as over at once: nothing is claimed of what is not known. */
export function limits(history: History, lives: Lives): Violation[] {
  const ends = new Map<string, number>()
  const call = (row: History['ledger'][number]) => `${row.jobId}/${row.attempt}/${row.pid}/${row.run}`
  for (const row of history.ledger) if (row.phase === 'end') ends.set(call(row), row.at)
  const edges = new Map<string, Edge[]>()
  for (const row of history.ledger) {
    const end = ends.get(call(row))
    const queue = lives.claims.get(`${row.jobId}/${row.attempt}`)?.queue
    if (row.phase !== 'start' || end === undefined || queue === undefined) continue
    const place = JSON.stringify([row.pid, queue])
    const list = edges.get(place) ?? []
    list.push({ at: row.at, by: 1, jobId: row.jobId }, { at: end, by: -1, jobId: row.jobId })
    edges.set(place, list)
  }
  const crowded = [...edges].flatMap(([place, list]) => {
    const [pid, queue] = JSON.parse(place) as [number, string]
    const limit = history.concurrency[queue]
    return limit === undefined ? [] : above(list, limit, pid, queue)
  })
  return [...crowded, ...paused(history, lives)]
}

/** A claim reads the clock before it looks for pauses: one that was answered by then it has seen. */
function paused({ pauses = [] }: History, lives: Lives): Violation[] {
  const byQueue = new Map<string, Pause[]>()
  for (const pause of pauses) byQueue.set(pause.queue, [...(byQueue.get(pause.queue) ?? []), pause])
  const found: Violation[] = []
  for (const { jobId, queue, attempt, claimedAt } of lives.claims.values()) {
    const isIn = byQueue.get(queue)?.some(({ from, to }) => from < claimedAt && claimedAt < to)
    if (!isIn) continue
    const says = `attempt ${attempt} was claimed while queue ${queue} was paused`
    found.push({ oracle: 'O5', figure: 'limits_broken', jobId, says })
  }
  return found
}

function above(edges: Edge[], limit: number, pid: number, queue: string): Violation[] {
  edges.sort((a, b) => a.at - b.at || a.by - b.by)
  const found: Violation[] = []
  let running = 0
  for (const { by, jobId } of edges) {
    running += by
    if (by < 0 || running <= limit) continue
    const says = `process ${pid} ran ${running} handlers of queue ${queue} at once, of ${limit}`
    found.push({ oracle: 'O5', figure: 'limits_broken', jobId, says })
  }
  return found
}
