-- Stop a job for good. One that waits is cancelled at once; one that runs is asked, and its handler aborted at the
-- worker's next heartbeat: it is cancelled when the handler ends, unless the handler ends well. Where the handler
-- ends in the very moment of the request, the next sweep cancels what went back or became a dead letter; a permanent
-- error stays.
-- Why no lock on the running row: a caller's open transaction would hold up the finish of a whole batch.
--
-- Returns: 'cancelled' | 'requested' | 'already_ended'.
-- Transaction: may run in the caller's (READ COMMITTED). Locks: the row in waiting; then its dedupe key.
-- Errors: RL010, RL011, RL030.
create or replace function rowlock.cancel(p_id bigint, p_actor text default null, p_reason text default null)
returns text
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $rowlock$
declare
  v_answer text;
  v_detail jsonb;
begin
  select a.answer, a.detail into v_answer, v_detail
    from rowlock.cancel_many(array[p_id], p_actor, p_reason, p_wait => true) as a;
  perform rowlock.require_changed('cancel', p_id, v_answer, v_detail);
  return v_answer;
end
$rowlock$;
