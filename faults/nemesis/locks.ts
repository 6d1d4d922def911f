// Locks that somebody else holds for a second: on rows that wait, on a whole table; and a snapshot that stays open.

import type { Nemesis } from '../context.ts'

const HELD_MS = 1_000

const rows: Nemesis = {
  name: 'row-lock',
  async inflict({ session, pause }, dice) {
    const share = dice.between(0.1, 1)
    return session(async (query) => {
      await query('begin')
      // Passing by what is locked: a fault that waits for rows in any order could make a circle of its own.
      const found = (await query(
        `select from rowlock.waiting where random() < ${share} limit 200 for update skip locked`,
      )) as { readonly rowCount: number }
      await pause(HELD_MS)
      await query('rollback')
      return `${found.rowCount} rows of waiting`
    })
  },
}

const table: Nemesis = {
  name: 'table-lock',
  async inflict({ session, pause }, dice) {
    const name = dice.pick(['waiting', 'running'])!
    return session(async (query) => {
      await query('begin')
      await query(`set local lock_timeout = '5s'`)
      await query(`lock table rowlock.${name} in access exclusive mode`)
      await pause(HELD_MS)
      await query('rollback')
      return name
    })
  },
}

const snapshot: Nemesis = {
  name: 'snapshot',
  async inflict({ session, pause }, dice) {
    const ms = Math.round(dice.between(1_000, 8_000))
    return session(async (query) => {
      await query('begin isolation level repeatable read')
      await query('select count(*) from rowlock.waiting')
      await pause(ms)
      await query('rollback')
      return `held for ${ms} ms`
    })
  },
}

export const locks: readonly Nemesis[] = [rows, table, snapshot]
