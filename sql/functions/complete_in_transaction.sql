-- Complete one job in the transaction of its handler's own writes: they commit together, or neither.
--
-- Transaction: the handler's, the one that hold was called in. Raises on a lost lease, so that the business writes
-- cannot commit without the job.
-- Locks: the row in running, on which this session holds a key share since the handler began.
-- Errors: RL020.
create or replace function rowlock.complete_in_transaction(
  p_id bigint, p_claim_id uuid, p_result jsonb default null, p_ran_ms double precision default 0) returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $rowlock$
begin
  perform rowlock.require_held(p_claim_id);
  perform rowlock.ensure_days(rowlock.now());
  if cardinality(rowlock.complete(jsonb_build_array(jsonb_strip_nulls(jsonb_build_object(
       'id', p_id, 'claim_id', p_claim_id, 'ran_ms', p_ran_ms))
       || case when p_result is null then '{}'::jsonb else jsonb_build_object('result', p_result) end))) = 0 then
    perform rowlock.refuse('RL020',
      format('job %s has another owner by now: nothing of this transaction may commit', p_id));
  end if;
end
$rowlock$;
