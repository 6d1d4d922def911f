// Where to begin looking, when dead rows that an old snapshot keeps make a look from the beginning slow.
// A full look is the normal case; the rules, and why each is as it is, stand in ARCHITECTURE.md.

import type { ClaimedJob, LinePosition } from '../engine/claim.ts'

const TRAIL_MS = 250
const SLOW_FACTOR = 3
const PAUSE_FACTOR = 20
const PAUSE_MAX_MS = 1_000
/** Below this a look is never slow: there is little to save. */
const FLOOR_MS = 0.3
/** What locking one row adds to a look, measured: 1 to 1.5 µs. */
const PER_JOB_MS = 0.0015
/** How fast a look that is not slow raises what counts as normal; a lower one lowers it at once. */
const CREEP = 0.001

interface Place {
  readonly kind: string
  readonly priority: number
  readonly at: number
  readonly id: string
}

/** Where each line was left, a moment ago, and whether the next look must be a full one. */
export class Frontier {
  /** Claims of the last TRAIL_MS and the newest before it: where each line stood, and when. */
  #trail: { readonly seenAt: number; readonly places: ReadonlyMap<string, Place> }[] = []
  #normalMs: number | undefined
  #fullLookDueAt = 0

  /** Where the next claim of this queue should begin; undefined: look at everything. */
  from(queue: string, now: number): Readonly<Record<string, readonly LinePosition[]>> | undefined {
    if (now >= this.#fullLookDueAt) return undefined
    const settled = this.#trail.findLast(({ seenAt }) => seenAt <= now - TRAIL_MS)
    if (settled === undefined) return undefined
    // Without a prototype: a kind may be called as a property of every object is.
    const positions: Record<string, LinePosition[]> = Object.create(null)
    for (const [line, { kind, priority, at, id }] of settled.places) {
      if (!line.startsWith(`${queue}\u0000`)) continue
      positions[kind] ??= []
      positions[kind].push({ priority, at: new Date(at).toISOString(), id })
    }
    return positions
  }

  /**
   * Take note of a claim: the last row returned is the frontier of its line, backwards too. Rows that were skipped
   * because somebody had locked them do not move it.
   */
  note(jobs: readonly ClaimedJob[], wasFull: boolean, lookedMs: number, now: number): void {
    const tookMs = Math.max(0, lookedMs - jobs.length * PER_JOB_MS)
    if (wasFull) this.#judge(tookMs, now)
    else this.#learn(tookMs)
    if (jobs.length === 0) return
    const places = new Map(this.#trail.at(-1)?.places)
    for (const { queue, kind, priority, availableAtMs, id } of jobs) {
      places.set(`${queue}\u0000${kind}\u0000${priority}`, { kind, priority, at: availableAtMs, id })
    }
    this.#trail.push({ seenAt: now, places })
    const settled = this.#trail.findLastIndex(({ seenAt }) => seenAt <= now - TRAIL_MS)
    if (settled > 0) this.#trail.splice(0, settled)
  }

  /** The clock stepped back, the queue was resumed, the connection was lost, a sleep ended: look at everything. */
  drop(): void {
    this.#trail = []
    this.#fullLookDueAt = 0
  }

  /** Is the next look a full one? */
  isFullDue(now: number): boolean {
    return now >= this.#fullLookDueAt
  }

  #judge(tookMs: number, now: number): void {
    const normal = this.#normalMs
    if (normal === undefined || tookMs <= Math.max(FLOOR_MS, normal * SLOW_FACTOR)) {
      this.#learn(tookMs)
      this.#fullLookDueAt = 0
      return
    }
    this.#fullLookDueAt = now + Math.min(tookMs * PAUSE_FACTOR, PAUSE_MAX_MS)
  }

  /** The cheapest looks are what a look costs without dead rows. */
  #learn(tookMs: number): void {
    const normal = this.#normalMs
    this.#normalMs = normal === undefined || tookMs < normal ? tookMs : normal + (tookMs - normal) * CREEP
  }
}
