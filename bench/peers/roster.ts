// Who may take part, and where each lives. What each is configured to is in its own file.

/** One contender: `bench/peers/<name>.ts`. */
export interface Entry {
  readonly name: string
  readonly on: 'postgres' | 'redis' | 'redis-aof'
  /** Part of the jobs of the fast ones that it gets: the slow would take the night. Figures are per job. Default 1. */
  readonly share?: number
}

/** Ours, then the others. */
export const ROSTER: readonly Entry[] = [
  { name: 'rowlock', on: 'postgres' },
  { name: 'rowlock-no-history', on: 'postgres' },
  { name: 'rowlock-full', on: 'postgres' },
  { name: 'rowlock-loop', on: 'postgres' },
  { name: 'rowlock-default', on: 'postgres', share: 0.3 },
  { name: 'graphile', on: 'postgres' },
  { name: 'graphile-large-queue', on: 'postgres' },
  { name: 'graphile-default', on: 'postgres', share: 0.05 },
  { name: 'pg-boss', on: 'postgres' },
  { name: 'pg-boss-work', on: 'postgres' },
  { name: 'pg-boss-default', on: 'postgres', share: 0.0001 },
  { name: 'bullmq-redis', on: 'redis' },
  { name: 'bullmq-redis-aof', on: 'redis-aof', share: 0.3 },
  { name: 'bullmq-redis-default', on: 'redis', share: 0.3 },
  { name: 'bullmq-postgres', on: 'postgres', share: 0.1 },
  { name: 'bullmq-postgres-default', on: 'postgres', share: 0.02 },
  { name: 'copy', on: 'postgres' },
  { name: 'insert-select', on: 'postgres' },
  { name: 'server-loop', on: 'postgres' },
]

/** Those of the roster with these names, in its order. */
export function entries(names: readonly string[]): Entry[] {
  return ROSTER.filter(({ name }) => names.includes(name))
}

/** Jobs of one contender, at least so few that a slow one is measured at all. */
export function jobsOf({ share = 1 }: Entry, jobs: number): number {
  return Math.max(Math.round(jobs * share), Math.min(jobs, 5))
}
