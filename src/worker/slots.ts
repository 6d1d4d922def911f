// Room for running handlers, queue by queue, and the claimed jobs that wait for it.

import type { Claim, ClaimedJob, Want } from '../engine/claim.ts'
import type { ServedSettings } from '../engine/lease.ts'
import { defaultPrefetch, type ServedQueue } from './options.ts'
import { type Sharing, turnsOf } from './sharing.ts'
import type { Turn, Turns } from './turns.ts'

interface Room {
  readonly queue: string
  /** As the worker was started. */
  readonly own: ServedQueue
  concurrency: number
  prefetch: number
  /** How many of the queue run or start is limited, over all workers. */
  isLimited: boolean
  running: number
  /** Of the running ones, those that ignored their signal: they hold their slot. */
  stuck: number
  readonly prefetched: ClaimedJob[]
}

/** What one queue looks like in this process. */
export interface RoomFigures {
  readonly running: number
  /** Of the running ones, those whose handlers ignored their signal. */
  readonly stuck: number
  readonly prefetched: number
  readonly concurrency: number
}

interface Startable {
  readonly startable: readonly ClaimedJob[]
  readonly expired: readonly ClaimedJob[]
}

/** Counts who runs, who is stuck and who waits, queue by queue. */
export class Slots {
  readonly #rooms: ReadonlyMap<string, Room>
  readonly #kinds: readonly string[]
  /** Of all queues together, where they share. */
  readonly #shared: number
  readonly #turns: Turns | undefined
  /** A job that was lost twice: it starts when nothing else runs, and nothing starts beside it. */
  #alone: { readonly job: ClaimedJob; started: boolean } | undefined
  /** Until then none of those is taken. Unit: ms of the monotonic clock. */
  #noneAloneUntil = Number.NEGATIVE_INFINITY

  constructor(queues: readonly ServedQueue[], kinds: readonly string[], sharing?: Sharing) {
    this.#rooms = new Map(
      queues.map((own) => {
        const { queue, concurrency, prefetch } = own
        const room = { queue, own, concurrency, prefetch, running: 0, stuck: 0, prefetched: [] }
        return [queue, { ...room, isLimited: false }]
      }),
    )
    this.#kinds = kinds
    this.#shared = sharing?.slots ?? Number.POSITIVE_INFINITY
    this.#turns = sharing && turnsOf(sharing)
  }

  /** What a claim should ask for now: enough to be worth a statement, or whatever an idle slot can get. */
  wants(): Want[] {
    if (this.#alone !== undefined) return []
    if (this.#turns !== undefined) return this.#wantsInTurn(this.#turns)
    const rooms = [...this.#rooms.values()]
    const hungry = rooms.some((room) => {
      const free = room.concurrency - room.running - room.prefetched.length
      return free > 0 || (room.prefetch > 0 && room.prefetched.length <= room.prefetch / 2)
    })
    if (!hungry) return []
    const alone = performance.now() >= this.#noneAloneUntil
    return rooms
      .map((room) => ({
        queue: room.queue,
        limit: room.concurrency + room.prefetch - room.running - room.prefetched.length,
        kinds: this.#kinds,
        ...(!alone && { alone }),
      }))
      .filter(({ limit }) => limit > 0)
  }

  /** Whoever's turn it is gets the free slots: nothing is claimed ahead of one. */
  #wantsInTurn(turns: Turns): Want[] {
    const free = this.#shared - this.running - this.prefetched
    const hungry = [...this.#rooms.values()]
      .map((room) => ({ queue: room.queue, limit: room.concurrency - room.running - room.prefetched.length }))
      .filter(({ limit }) => limit > 0)
    if (free <= 0 || hungry.length === 0) return []
    const alone = performance.now() >= this.#noneAloneUntil
    return turns
      .share(hungry, free)
      .map((turn) => ({ ...turn, kinds: this.#kinds, ...(!alone && { alone }) }))
  }

  /** What came of these wants. A job that runs alone was looked for first, and says nothing of the others. */
  note(wanted: readonly Want[], { found, alone }: Pick<Claim, 'found' | 'alone'>): void {
    if (!alone) this.#turns?.note(wanted as readonly Turn[], found)
  }

  /**
   * Run as many handlers of each queue at once as these say; a queue that has no word here as the worker was started.
   * What runs goes on. Answers the prefetched jobs that have no room any more, and whether anything is another.
   */
  resize(settings: ServedSettings): { readonly surplus: readonly ClaimedJob[]; readonly changed: boolean } {
    const surplus: ClaimedJob[] = []
    let changed = false
    for (const [queue, room] of this.#rooms) {
      const { own } = room
      const { concurrency: ofQueue = null, limited = false } = settings[queue] ?? {}
      const concurrency = Math.min(ofQueue ?? own.concurrency, this.#shared)
      // A job that is claimed counts: one that waited for a slot here would keep one of its limit from the others.
      const prefetch = limited ? 0 : own.hasOwnPrefetch ? own.prefetch : defaultPrefetch(concurrency)
      room.isLimited = limited
      if (concurrency === room.concurrency && prefetch === room.prefetch) continue
      changed = true
      room.concurrency = concurrency
      room.prefetch = prefetch
      surplus.push(...room.prefetched.splice(room.prefetch + Math.max(0, concurrency - room.running)))
    }
    return { surplus, changed }
  }

  /** Handlers that may run at once, in all queues. */
  get concurrency(): number {
    return Math.min(
      this.#shared,
      this.#sum(({ concurrency }) => concurrency),
    )
  }

  /** By queue. */
  figures(): [string, RoomFigures][] {
    return [...this.#rooms].map(([queue, { running, stuck, prefetched, concurrency }]) => [
      queue,
      { running, stuck, prefetched: prefetched.length, concurrency },
    ])
  }

  hasRoom(queue: string): boolean {
    const room = this.#rooms.get(queue)
    if (room === undefined || this.running + this.prefetched >= this.#shared) return false
    return room.running + room.prefetched.length < room.concurrency + room.prefetch
  }

  isLimited(queue: string): boolean {
    return this.#rooms.get(queue)?.isLimited === true
  }

  add(jobs: readonly ClaimedJob[]): void {
    for (const job of jobs) this.#room(job).prefetched.push(job)
  }

  /** Keep a job for the moment when nothing else runs. Answers the jobs that must not wait for that. */
  setAlone(job: ClaimedJob): ClaimedJob[] {
    this.#alone = { job, started: false }
    return this.takeUnstarted()
  }

  /** The next jobs to start, which have their slots from now on; and those whose turn comes after they expired. */
  takeStartable(): Startable {
    const now = performance.now()
    if (this.#alone !== undefined) {
      const { job, started } = this.#alone
      if (started || this.running - this.stuck > 0) return { startable: [], expired: [] }
      if (isOver(job, now)) {
        this.#alone = undefined
        return { startable: [], expired: [job] }
      }
      this.#alone.started = true
      this.#room(job).running++
      return { startable: [job], expired: [] }
    }
    const startable: ClaimedJob[] = []
    const expired: ClaimedJob[] = []
    for (const room of this.#rooms.values()) {
      if (room.prefetched.length === 0) continue
      let taken = 0
      while (taken < room.prefetched.length && room.running < room.concurrency) {
        const job = room.prefetched[taken++]!
        if (isOver(job, now)) {
          expired.push(job)
          continue
        }
        room.running++
        startable.push(job)
      }
      room.prefetched.splice(0, taken)
    }
    return { startable, expired }
  }

  isAlone(job: ClaimedJob): boolean {
    return this.#alone?.job === job
  }

  /** A handler has ended and given its slot back. */
  free(job: ClaimedJob, wasStuck: boolean): void {
    const room = this.#room(job)
    room.running--
    if (wasStuck) room.stuck--
    if (this.#alone?.job === job) this.#alone = undefined
  }

  /** A handler ignored its signal. It is waited for no longer; a job that ran alone lets others run again. */
  setStuck(job: ClaimedJob): void {
    this.#room(job).stuck++
    if (this.#alone?.job === job) this.#alone = undefined
  }

  /** Give up one claimed job, if it has not started. */
  takeOne(id: string): ClaimedJob | undefined {
    for (const { prefetched } of this.#rooms.values()) {
      const at = prefetched.findIndex((job) => job.id === id)
      if (at >= 0) return prefetched.splice(at, 1)[0]
    }
    return this.#alone?.job.id === id ? this.takeAlone() : undefined
  }

  /** Is this claim here, and not started? */
  has(id: string, claimId: string): boolean {
    const isIt = (job: ClaimedJob) => job.id === id && job.claimId === claimId
    if (this.#alone !== undefined && isIt(this.#alone.job)) return true
    return [...this.#rooms.values()].some(({ prefetched }) => prefetched.some(isIt))
  }

  /** Give up the claimed jobs that have not started. */
  takeUnstarted(): ClaimedJob[] {
    const jobs: ClaimedJob[] = []
    for (const room of this.#rooms.values()) jobs.push(...room.prefetched.splice(0))
    return jobs
  }

  /** At shutdown: also the one that waits to run alone. */
  takeAlone(): ClaimedJob | undefined {
    if (this.#alone === undefined || this.#alone.started) return undefined
    const { job } = this.#alone
    this.#alone = undefined
    return job
  }

  /** It waited long enough for the others to end: give it up, unless it runs, and take none for so long. */
  giveUpAlone(job: ClaimedJob, noneForMs: number): ClaimedJob | undefined {
    if (!this.isAlone(job)) return undefined
    const unstarted = this.takeAlone()
    if (unstarted !== undefined) this.#noneAloneUntil = performance.now() + noneForMs
    return unstarted
  }

  get running(): number {
    return this.#sum(({ running }) => running)
  }

  get stuck(): number {
    return this.#sum(({ stuck }) => stuck)
  }

  get prefetched(): number {
    return this.#sum(({ prefetched }) => prefetched.length)
  }

  #sum(of: (room: Room) => number): number {
    let sum = 0
    for (const room of this.#rooms.values()) sum += of(room)
    return sum
  }

  #room(job: ClaimedJob): Room {
    return this.#rooms.get(job.queue)!
  }
}

const isOver = ({ expiresAt }: ClaimedJob, now: number): boolean => expiresAt !== null && now >= expiresAt
