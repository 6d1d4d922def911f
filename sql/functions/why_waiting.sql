-- Why a job waits: its time, its queue, whoever has its row; the workers where none of these holds it. Internal: a part
-- of why.
create or replace function rowlock.why_waiting(p_id bigint, p_now timestamptz)
returns table (reason text, says text, since timestamptz, until timestamptz, detail jsonb)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $rowlock$
declare
  v_job record;
  v_last record;
  v_pause record;
  v_asked record;
  v_holder record;
  v_is_due boolean;
  v_reasons integer := 0;
begin
  select w.*, w.xmax as locked_by, w.xmin as written_by, w.tableoid as relation, coalesce(w.max_attempts, 10) as most
    into v_job
    from rowlock.waiting w where w.id = p_id;
  v_is_due := v_job.available_at <= p_now;
  select a.outcome, a.error, a.ended_at into v_last
    from rowlock.attempt a where a.job_id = p_id order by a.attempt desc, a.ended_at desc limit 1;

  if not v_is_due then
    v_reasons := v_reasons + 1;
    until := v_job.available_at;
    if v_job.cause is not null then
      reason := 'retry_later';
      since := v_last.ended_at;
      says := format(
        'attempt %s failed (%s)%s; that is failure %s of %s. The next attempt is due at %s. rowlock run-now %s makes '
        'it due at once', v_job.attempt, v_job.cause, rowlock.say_error(v_last.error), v_job.failures, v_job.most,
        rowlock.say_when(v_job.available_at, p_now), p_id);
      detail := jsonb_build_object('cause', v_job.cause, 'failures', v_job.failures, 'max_attempts', v_job.most,
        'attempt', v_job.attempt, 'error', v_last.error);
    else
      reason := 'scheduled';
      since := case when v_last.outcome = 'snoozed' then v_last.ended_at else v_job.enqueued_at end;
      says := format('%s: it is due at %s. rowlock run-now %s makes it due at once',
        case when v_last.outcome = 'snoozed' then 'its handler put it off' else 'it is scheduled' end,
        rowlock.say_when(v_job.available_at, p_now), p_id);
      detail := jsonb_build_object('snoozed', coalesce(v_last.outcome = 'snoozed', false));
    end if;
    return next;
  end if;

  select q.paused_at, q.paused_by, q.paused_because into v_pause from rowlock.paused(v_job.queue) as q;
  if v_pause.paused_at is not null then
    v_reasons := v_reasons + 1;
    reason := 'paused';
    since := v_pause.paused_at;
    until := null;
    says := format('queue %s is paused since %s%s. rowlock resume %s lets it run again', v_job.queue,
      rowlock.say_when(v_pause.paused_at, p_now), rowlock.say_by(v_pause.paused_by, v_pause.paused_because),
      rowlock.say_word(v_job.queue));
    detail := jsonb_build_object('queue', v_job.queue, 'actor', v_pause.paused_by, 'reason', v_pause.paused_because);
    return next;
  end if;

  if pg_current_xact_id_if_assigned() is not null
     and exists (select from rowlock.row_holders(v_job.written_by, v_job.relation) as h where h.is_self) then
    v_reasons := v_reasons + 1;
    reason := 'row_locked';
    since := null;
    until := null;
    says := 'the transaction that asks has put it in or changed it: nobody else sees that before it commits';
    detail := jsonb_build_object('pid', pg_backend_pid(), 'is_self', true);
    return next;
  else
    for v_holder in select h.* from rowlock.row_holders(v_job.locked_by, v_job.relation) as h loop
      v_reasons := v_reasons + 1;
      reason := 'row_locked';
      since := v_holder.since;
      until := null;
      says := rowlock.say_holder(to_jsonb(v_holder), v_holder.since, p_now);
      detail := jsonb_strip_nulls(to_jsonb(v_holder));
      return next;
    end loop;
  end if;

  select c.requested_at, c.actor, c.reason as why into v_asked from rowlock.cancel_request c where c.job_id = p_id;
  if found then
    v_reasons := v_reasons + 1;
    reason := 'cancel_requested';
    since := v_asked.requested_at;
    until := null;
    says := format('it was to be cancelled while it ran, at %s%s: the next sweep of the worker on duty cancels it',
      rowlock.say_when(v_asked.requested_at, p_now), rowlock.say_by(v_asked.actor, v_asked.why));
    detail := jsonb_build_object('actor', v_asked.actor, 'reason', v_asked.why);
    return next;
  end if;

  return query
    select u.reason, u.says, u.since, u.until, u.detail
      from rowlock.why_unclaimed(p_id, v_reasons > 0, p_now) as u;

  if v_job.expires_at is not null and isfinite(v_job.expires_at) then
    reason := 'expires';
    since := null;
    until := v_job.expires_at;
    says := case when v_job.expires_at > p_now
      then format('it is cancelled at %s, unless it has started by then', rowlock.say_when(v_job.expires_at, p_now))
      else format('it expired at %s: the next claim or sweep that meets it cancels it',
        rowlock.say_when(v_job.expires_at, p_now)) end;
    detail := '{}';
    return next;
  end if;
end
$rowlock$;
