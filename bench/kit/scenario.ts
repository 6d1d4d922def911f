// What every scenario is, what it is given, and what it answers. No scenario imports a peer: what is measured is a
// module that runs in a child process of its own (`child.ts`), so the list of scenarios needs no peer installed.

import type { Plot } from './plot.ts'
import type { BenchRedis } from './redis.ts'
import type { BenchServer, ServerOptions } from './server.ts'

/** One file of `bench/scenarios/`, named as its file is, exports one as `scenario`. */
export interface Scenario {
  readonly name: string
  /** One line for the list. */
  readonly title: string
  /** How it is measured, in a paragraph of Markdown: stands in RESULTS.md above the tables. */
  readonly how: string
  /** Rounds of a whole run when none are asked for. Default 5; a quick run does 2. */
  readonly rounds?: number
  /** What it needs that is not a matter of course ("about 15 GB of disk"): a whole run asks first, or takes --yes. */
  readonly needs?: string
  run(bench: Bench): Promise<ScenarioResult>
}

/** What a scenario is given. */
export interface Bench {
  /** A small version that is done within two minutes on a shared machine; its figures are trials. */
  readonly quick: boolean
  readonly rounds: number
  /** What is left of a quick run's time when it is asked for: the last argument of `interleaved`. Unit: ms. */
  readonly budgetMs: number
  /** Only these contenders, by name; all when undefined. Such a run is not recorded. */
  readonly among?: readonly string[] | undefined
  /** A server of this run's own; the same options get the same server. Stopped and removed at the end of the run. */
  server(options?: ServerOptions): Promise<BenchServer>
  /** A Redis of this run's own. Undefined when it is not installed here. */
  redis(options: { readonly aof: boolean }): Promise<BenchRedis | undefined>
  /** Progress, on stderr. */
  say(line: string): void
}

/** Figures by name. The unit is in the name: `perSecond`, `drainCpuUs`, `walBytes`, `p50Ms`. */
export type Figures = Readonly<Record<string, number>>

/** The middle of several rounds, and how far they lay apart. */
export interface Spread {
  readonly median: number
  readonly min: number
  readonly max: number
  readonly rounds: readonly number[]
}

/** A table of RESULTS.md. Numbers are rounded to three digits where they are printed; null is a dash. */
export interface Table {
  readonly title: string
  readonly columns: readonly string[]
  readonly rows: readonly (readonly (string | number | null | Spread)[])[]
}

/** A figure that was to be reached. */
export interface Target {
  readonly what: string
  readonly is: number
  readonly atLeast?: number
  readonly atMost?: number
  /** A stretch that is missed is no failure. */
  readonly stretch?: boolean
}

/** Who took part, and how it was configured: printed in RESULTS.md word by word. */
export interface Contender {
  readonly name: string
  readonly configuration: string
}

/** What a scenario answers. `ours`, `peers`, `ratios` and `counted` are the last line of --json. */
export interface ScenarioResult {
  /** Rounds that were done, where they can be fewer than were asked for. */
  readonly rounds?: number
  /** Rowlock's own medians. */
  readonly ours: Figures
  /** Medians of each peer and reference, by its name; empty where there are none. */
  readonly peers: Readonly<Record<string, Figures>>
  /** Ours against theirs, above 1 where ours is better unless the name says otherwise. */
  readonly ratios: Figures
  /** Counted figures per job, of ours and of each peer, which other load on the machine hardly moves. */
  readonly counted: Readonly<Record<string, Figures>>
  readonly tables: readonly Table[]
  readonly plots?: readonly Plot[]
  readonly targets: readonly Target[]
  readonly contenders?: readonly Contender[]
  /** Peers and servers that were not there, in words. */
  readonly missing?: readonly string[]
  readonly notes?: readonly string[]
}
