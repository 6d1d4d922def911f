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
  v_now timestamptz := rowlock.now();
  v_tids tid[];
  v_worker_id uuid;
begin
  perform rowlock.require_read_committed('cancel');
  for v_round in 1 .. 20 loop
    v_tids := array(select w.ctid from rowlock.waiting w where w.id = p_id for update);
    if v_tids <> '{}' then
      perform rowlock.end_waiting(v_tids, left(p_actor, 200), left(p_reason, 1000), v_now);
      perform rowlock.note('cancel', p_id, null, p_actor, p_reason);
      return 'cancelled';
    end if;
    insert into rowlock.cancel_request (job_id, requested_at, actor, reason)
    select r.id, v_now, left(p_actor, 200), left(p_reason, 1000) from rowlock.running r where r.id = p_id
        on conflict (job_id) do nothing;
    -- It may have moved on since: only a job that still runs has been asked.
    -- A move after this look finds the request.
    select r.worker_id into v_worker_id from rowlock.running r where r.id = p_id;
    if found then
      perform rowlock.note('cancel', p_id, null, p_actor, p_reason);
      perform pg_notify(rowlock.channel(), 'cancel ' || v_worker_id);
      return 'requested';
    end if;
    if rowlock.state_of(p_id) in ('done', 'failed', 'cancelled', 'dead_letter') then
      delete from rowlock.cancel_request c where c.job_id = p_id;
      return 'already_ended';
    end if;
    perform pg_sleep(0.002 * v_round);
  end loop;
  perform rowlock.refuse('RL011', format('job %s kept moving', p_id));
end
$rowlock$;
