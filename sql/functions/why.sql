-- Why a job is where it is: what keeps it from running, or how it runs, or how it ended; each with its evidence and
-- what to do next. One consistent look, which locks nothing and writes nothing: it can be asked in any transaction,
-- one that may only read included.
--
-- Returns: one row a reason, the most important first. `reason` is a code that does not change; `says` a sentence for
--   people; `since` and `until` are instants of that reason, where it has them; `detail` has the figures. The reasons:
--   of a job that waits: expired, scheduled, retry_later, paused, row_locked, cancel_requested, running_limit,
--     rate_limit, limits_locked, no_worker, no_handler, workers_draining, workers_full, suspect, behind, due (nothing
--     holds it), expires;
--   of one that runs: lease_over, overdue, cancel_requested, prefetched, running, expires;
--   of one that ended: done, failed, cancelled; dead_letter.
-- Errors: RL010.
create or replace function rowlock.why(p_id bigint)
returns table (reason text, says text, since timestamptz, until timestamptz, detail jsonb)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $rowlock$
declare
  v_now timestamptz := rowlock.now();
  v_state text;
begin
  select j.state into v_state from rowlock.job j where j.id = p_id;
  if v_state in ('queued', 'retryable') then
    return query select * from rowlock.why_waiting(p_id, v_now);
  elsif v_state = 'running' then
    return query select * from rowlock.why_running(p_id, v_now);
  elsif v_state is not null then
    return query select * from rowlock.why_ended(p_id, v_now);
  else
    perform rowlock.refuse('RL010', format('no job has the id %s', p_id));
  end if;
end
$rowlock$;
