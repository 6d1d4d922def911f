// What a process holds at this moment, after its garbage was collected: counted from outside, so that what is measured
// need not know of it. Emitters, maps and running jobs are found by watching what is done to them, and held weakly.

import { EventEmitter, getEventListeners } from 'node:events'
import pg from 'pg'
import { Runs } from '../../src/worker/runs.ts'

/** What is counted in a process. */
export interface Gauges {
  /** Bytes in use. */
  readonly heap: number
  /** Bytes of buffers beside the heap. */
  readonly buffers: number
  /** Sockets, pipes, servers and requests that keep the process alive. */
  readonly handles: number
  readonly timers: number
  /** Of every emitter, pool, client and signal that is not garbage. */
  readonly listeners: number
  /** Emitters and signals that have or had a listener. */
  readonly emitters: number
  readonly clients: number
  /** Jobs that were in a slot, as long as anything holds them. */
  readonly runs: number
  /** In all maps and sets together. */
  readonly entries: number
}

/** Things of one kind, until they are garbage. */
class Watched<Thing extends object> {
  readonly #known = new WeakSet<Thing>()
  #refs: WeakRef<Thing>[] = []

  note(thing: Thing): void {
    if (this.#known.has(thing)) return
    this.#known.add(thing)
    this.#refs.push(new WeakRef(thing))
  }

  alive(): Thing[] {
    this.#refs = this.#refs.filter((ref) => ref.deref() !== undefined)
    return this.#refs.map((ref) => ref.deref()!)
  }
}

const emitters = new Watched<EventEmitter | EventTarget>()
const maps = new Watched<Map<unknown, unknown> | Set<unknown>>()
const runs = new Watched<object>()

/** Watch from now on. To be called before anything else is done. */
export function watch(): void {
  emitters.note(process)
  const names = ['on', 'addListener', 'once', 'prependListener', 'prependOnceListener'] as const
  for (const name of names) noting(EventEmitter.prototype, name, (self) => emitters.note(self))
  noting(EventTarget.prototype, 'addEventListener', (self) => emitters.note(self))
  noting(Map.prototype, 'set', (self) => maps.note(self))
  noting(Set.prototype, 'add', (self) => maps.note(self))
  noting(Runs.prototype, 'add', (_, run) => runs.note(run))
}

/** Put something before a method of a class. */
function noting<Self extends object>(
  prototype: Self,
  name: keyof Self,
  note: (self: Self, first: object) => void,
): void {
  const plain = prototype[name] as (...args: unknown[]) => unknown
  const noted = function noted(this: Self, ...args: unknown[]) {
    note(this, args[0] as object)
    return plain.apply(this, args)
  }
  prototype[name] = noted as Self[keyof Self]
}

/** Count it all. */
export async function gauge(): Promise<Gauges> {
  const collect = globalThis.gc
  if (collect === undefined) throw new Error('start it with --expose-gc')
  // What is finalized by one may let go of more; what was looked at weakly lives until the turn ends.
  for (let times = 0; times < 3; times++) {
    collect()
    await new Promise((resolve) => setImmediate(resolve))
  }
  collect()
  const { heapUsed, external } = process.memoryUsage()
  const resources = process.getActiveResourcesInfo()
  const timers = resources.filter((name) => name === 'Timeout').length
  const passing = resources.filter((name) => name === 'Immediate').length
  const heard = emitters.alive()
  return {
    heap: heapUsed,
    buffers: external,
    handles: resources.length - timers - passing,
    timers,
    listeners: heard.reduce((sum, target) => sum + listenersOf(target), 0),
    emitters: heard.length,
    clients: heard.filter((target) => target instanceof pg.Client).length,
    runs: runs.alive().length,
    entries: maps.alive().reduce((sum, { size }) => sum + size, 0),
  }
}

function listenersOf(target: EventEmitter | EventTarget): number {
  if (!(target instanceof EventEmitter)) return getEventListeners(target, 'abort').length
  return target.eventNames().reduce((sum, name) => sum + target.listenerCount(name), 0)
}
