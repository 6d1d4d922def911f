-- Put a dead letter back in its queue: the same job, its failures forgotten.
--
-- Transaction: may run in the caller's. Locks: its dedupe key, which it takes again, then the row in dead_letter.
-- Errors: RL010, RL011, RL012, RL013 another live job has the key, RL030.
create or replace function rowlock.redrive(p_id bigint, p_actor text default null, p_reason text default null)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $rowlock$
begin
  perform rowlock.require_changed('redrive', p_id, a.answer, a.detail)
     from rowlock.redrive_many(array[p_id], p_actor, p_reason, p_wait => true) as a;
end
$rowlock$;
