-- Hold a running job for the transaction of its handler: while this session lives, the reaper passes the job by.
--
-- Transaction: the handler's, right after its begin.
-- Locks: the job's row in running (key share: the heartbeat may still write beside it).
-- Errors: RL020.
create or replace function rowlock.hold(p_id bigint, p_claim_id uuid) returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $rowlock$
begin
  perform 1 from rowlock.running r where r.id = p_id and r.claim_id = p_claim_id for key share;
  if not found then
    perform rowlock.refuse('RL020', format('job %s has another owner by now', p_id));
  end if;
  -- Ends with this transaction, whoever ends it: require_held looks for it.
  perform set_config('rowlock_held.claim', p_claim_id::text, true);
end
$rowlock$;
