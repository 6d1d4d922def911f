// The database refuses the next changes of a table with a chosen SQLSTATE, then goes on as if nothing had been.

import type { Nemesis } from '../context.ts'

const STATES = ['40001', '40P01', '57014', '53300', '25006', '55P03']
const TABLES = ['waiting', 'running', 'finished', 'dead_letter', 'worker', 'dedupe', 'attempt']

export const refusal: Nemesis = {
  name: 'refusal',
  weight: 2,
  async inflict({ sql }, dice) {
    const [phase, sqlstate, times] = [dice.pick(TABLES)!, dice.pick(STATES)!, 1 + dice.whole(5)]
    await sql(
      `insert into faults.refusal (phase, sqlstate, upto)
       select $1, $2, case when s.is_called then s.last_value else 0 end + $3 from faults.refused s
       on conflict (phase) do update set sqlstate = excluded.sqlstate, upto = excluded.upto`,
      [phase, sqlstate, times],
    )
    return `${times} changes of ${phase} with ${sqlstate}`
  },
  async heal({ sql }) {
    await sql('delete from faults.refusal')
  },
}
