-- Run an ended job again, by hand: a new job with the same input and settings, which names the old one as
-- `retried_from`. An idempotency key that was given for the old job goes with it; one that was made is made anew.
--
-- Returns: the new job's id.
-- Transaction: may run in the caller's. Locks: its dedupe key, which it takes.
-- Errors: RL010, RL011, RL012 it has not ended, RL013 another live job has the key, RL030.
create or replace function rowlock.retry(p_id bigint, p_actor text default null, p_reason text default null)
returns bigint
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $rowlock$
declare
  v_answer text;
  v_detail jsonb;
begin
  select a.answer, a.detail into v_answer, v_detail
    from rowlock.retry_many(array[p_id], p_actor, p_reason, p_wait => true) as a;
  perform rowlock.require_changed('retry', p_id, v_answer, v_detail);
  return (v_detail ->> 'new_job_id')::bigint;
end
$rowlock$;
