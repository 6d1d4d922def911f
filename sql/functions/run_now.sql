-- Make a scheduled or retryable job due at once.
--
-- Transaction: may run in the caller's. Locks: the row in waiting.
-- Errors: RL010, RL011, RL012, RL030.
create or replace function rowlock.run_now(p_id bigint, p_actor text default null, p_reason text default null)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $rowlock$
declare
  v_now timestamptz := rowlock.now();
  v_tid tid := rowlock.find_waiting(p_id, 'run_now');
  v_queue text;
begin
  update rowlock.waiting w set available_at = least(w.available_at, v_now) where w.ctid = v_tid
  returning w.queue into v_queue;
  perform rowlock.note('run_now', p_id, null, p_actor, p_reason);
  perform rowlock.wake(array[v_queue], v_now);
end
$rowlock$;
