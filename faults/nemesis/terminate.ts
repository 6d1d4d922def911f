// Backends are terminated at the server, picked by what their sessions are called.

import type { Nemesis } from '../context.ts'

const NAMES = [
  'rowlock worker',
  'rowlock heartbeat',
  'rowlock listen',
  'rowlock handlers',
  'rowlock',
  'producer',
]

export const terminate: Nemesis = {
  name: 'terminate',
  async inflict({ sql }, dice) {
    const name = dice.pick(NAMES)!
    const most = dice.chance(0.5) ? 1 : 100
    const rows = await sql(
      `select pg_terminate_backend(a.pid)
         from (select pid from pg_stat_activity
                where application_name = $1 and datname = current_database() limit $2) as a`,
      [name, most],
    )
    return `${rows.length} sessions of ${name}`
  },
}
