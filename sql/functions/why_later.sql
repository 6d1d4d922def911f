-- Until when a job waits whose time has not come, and for what. Internal: a part of why.
create or replace function rowlock.why_later(p_id bigint, p_now timestamptz)
returns table (reason text, says text, since timestamptz, until timestamptz, detail jsonb)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $rowlock$
declare
  v_job record;
  v_last record;
  v_due text;
begin
  select w.*, coalesce(w.max_attempts, 10) as most into v_job
    from rowlock.waiting w where w.id = p_id and w.available_at > p_now;
  if not found then
    return;
  end if;
  select a.outcome, a.error, a.ended_at into v_last
    from rowlock.attempt a where a.job_id = p_id order by a.attempt desc, a.ended_at desc limit 1;
  v_due := rowlock.say_due(v_job.available_at, p_now);
  until := v_job.available_at;
  if v_job.cause is not null then
    reason := 'retry_later';
    since := v_last.ended_at;
    says := format(
      'attempt %s failed (%s)%s; that is failure %s of %s. The next attempt is %s. rowlock run-now %s makes it due at '
      'once', v_job.attempt, v_job.cause, rowlock.say_error(v_last.error), v_job.failures, v_job.most, v_due, p_id);
    detail := jsonb_build_object('cause', v_job.cause, 'failures', v_job.failures, 'max_attempts', v_job.most,
      'attempt', v_job.attempt, 'error', v_last.error);
  else
    reason := 'scheduled';
    since := case when v_last.outcome = 'snoozed' then v_last.ended_at else v_job.enqueued_at end;
    says := format('%s: it is %s. rowlock run-now %s makes it due at once',
      case when v_last.outcome = 'snoozed' then 'its handler put it off' else 'it is scheduled' end, v_due, p_id);
    detail := jsonb_build_object('snoozed', coalesce(v_last.outcome = 'snoozed', false));
  end if;
  return next;
end
$rowlock$;
