// A gate in the database: who works in steps waits there, in the middle of one, until it is opened. So a test that has
// to do something between two steps is not in a race with them, whatever the machine has else to do.

import type { TestRowlock } from './database.ts'
import { until } from './until.ts'

export interface Gate {
  /** Close it: whoever would bring the count of a row beyond this waits. */
  close(bound: number): Promise<void>
  /** Wait until somebody stands before it. */
  untilReached(): Promise<void>
  /** Let everybody pass. */
  open(): Promise<void>
}

const KEY = '4711, 1'

/** Stands in the updates of this column; open to begin with. One in each database. */
export async function makeGate(db: TestRowlock, table: string, column: string): Promise<Gate> {
  const keeper = await db.session()
  let isClosed = false
  await db.sql(`
    create table public.gate (bound bigint not null);
    insert into public.gate values (0);
    create function public.wait_at_gate() returns trigger language plpgsql as $$ begin
      if new.${column} > (select g.bound from public.gate g) then
        perform pg_catalog.pg_advisory_xact_lock_shared(${KEY});
      end if;
      return new;
    end $$;
    create trigger gate before update on rowlock.${table} for each row execute function public.wait_at_gate()`)
  return {
    async close(bound) {
      await db.sql('update public.gate set bound = $1', [bound])
      if (!isClosed) await keeper.query(`select pg_advisory_lock(${KEY})`)
      isClosed = true
    },
    async untilReached() {
      await until('somebody stands before the gate', async () => {
        const waits = `select from pg_locks where locktype = 'advisory' and classid = 4711 and not granted
          and database = (select oid from pg_database where datname = current_database())`
        return (await db.sql(waits)).length > 0
      })
    },
    async open() {
      if (isClosed) await keeper.query(`select pg_advisory_unlock(${KEY})`)
      isClosed = false
    },
  }
}
