-- How a job runs: on which worker, since when, until when; whether its lease, its time or somebody's word is against
-- it.
-- Internal: a part of why.
create or replace function rowlock.why_running(p_id bigint, p_now timestamptz)
returns table (reason text, says text, since timestamptz, until timestamptz, detail jsonb)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $rowlock$
declare
  v_job record;
  v_asked record;
  v_session record;
  v_held bigint;
  v_over_at timestamptz;
  v_who text;
begin
  select r.*, r.xmax as locked_by, r.tableoid as relation, coalesce(r.timeout, interval '15 minutes') as may_take,
         w.id is not null as is_there, w.name, w.beat_at, w.expires_at as lease_until, w.lease,
         coalesce(w.expires_at > p_now, false) as holds,
         coalesce(q.concurrency, rowlock.figure(w.queues -> r.queue, 'concurrency')) as slots
    into v_job
    from rowlock.running r
    left join rowlock.worker w on w.id = r.worker_id
    left join rowlock.queue q on q.name = r.queue
   where r.id = p_id;
  v_who := coalesce(v_job.name, v_job.worker_id::text);
  v_over_at := v_job.started_at + v_job.may_take;

  if not v_job.holds then
    reason := 'lease_over';
    since := v_job.lease_until;
    says := case when v_job.is_there
      then format('the lease of worker %s is over since %s (last beat at %s)', v_who,
        rowlock.say_when(v_job.lease_until, p_now), rowlock.say_when(v_job.beat_at, p_now))
      else format('worker %s, which had claimed it, is gone', v_who) end
      || case
           when v_job.beat_at < pg_postmaster_start_time() and p_now < pg_postmaster_start_time() + v_job.lease
             then format('; the server was away, so the reaper waits until %s for what that worker may still say',
               rowlock.say_when(pg_postmaster_start_time() + v_job.lease, p_now))
           when exists (select from rowlock.worker w where w.expires_at > p_now)
             then '; the next sweep of the worker on duty gives it back'
           else '; no worker lives that would give it back: start one'
         end;
    detail := jsonb_build_object('worker_id', v_job.worker_id, 'attempt', v_job.attempt, 'started', v_job.started_at);
    return next;
  end if;

  if v_over_at < p_now then
    reason := 'overdue';
    since := v_over_at;
    says := format('it has run for %s, and may for %s%s: its signal was given, and the handler ignores it%s',
      rowlock.say_length(p_now - v_job.started_at), rowlock.say_length(v_job.may_take),
      case when v_job.timeout is null then ', unless its handler says otherwise' else '' end,
      format('. See the log of %s for a stuck handler', v_who));
    detail := jsonb_build_object('timeout_ms', rowlock.length_ms(v_job.may_take), 'started_at', v_job.started_at);
    return next;
  end if;

  select c.requested_at, c.actor, c.reason as why into v_asked from rowlock.cancel_request c where c.job_id = p_id;
  if found then
    reason := 'cancel_requested';
    since := v_asked.requested_at;
    says := format('it is to be cancelled, asked at %s%s: its signal is given with the next beat of %s, and it is '
      'cancelled when its handler ends, unless that ends well', rowlock.say_when(v_asked.requested_at, p_now),
      rowlock.say_by(v_asked.actor, v_asked.why), v_who);
    detail := jsonb_build_object('actor', v_asked.actor, 'reason', v_asked.why);
    return next;
  end if;

  if v_job.holds then
    select count(*) into v_held from rowlock.running r where r.worker_id = v_job.worker_id and r.queue = v_job.queue;
    detail := jsonb_strip_nulls(jsonb_build_object(
      'worker_id', v_job.worker_id, 'worker', v_job.name, 'attempt', v_job.attempt, 'claimed_at', v_job.claimed_at,
      'started_at', v_job.started_at, 'lease_until', v_job.lease_until, 'in_transaction', v_job.in_transaction,
      'held', v_held, 'slots', v_job.slots));
    if v_job.started_at is not null then
      reason := 'running';
      since := v_job.started_at;
      until := v_over_at;
      says := format('attempt %s runs on worker %s since %s; it may take until %s. The lease holds until %s',
        v_job.attempt, v_who, rowlock.say_when(v_job.started_at, p_now), rowlock.say_when(v_over_at, p_now),
        rowlock.say_when(v_job.lease_until, p_now));
      if v_job.in_transaction then
        select h.* into v_session from rowlock.row_holders(v_job.locked_by, v_job.relation) as h limit 1;
        says := says || format('; its transaction is %s',
          case when v_session.pid is null then 'gone'
               else format('that of pid %s%s', v_session.pid,
                 coalesce(', ' || nullif(concat_ws(' and ', v_session.state, v_session.doing), ''), '')) end);
        detail := detail || jsonb_build_object('session', jsonb_strip_nulls(to_jsonb(v_session)));
      end if;
    elsif v_job.beat_at > v_job.claimed_at and (v_held > v_job.slots or v_job.losses >= 2 or v_job.slots is null) then
      reason := 'prefetched';
      since := v_job.claimed_at;
      until := v_job.lease_until;
      says := format('worker %s claimed it at %s and has not started it: it waits %s', v_who,
        rowlock.say_when(v_job.claimed_at, p_now),
        case when v_job.losses >= 2 then 'until the others there have ended, to run alone'
             else format('for a free slot there (%s jobs of queue %s for %s slots)', v_held, v_job.queue,
               v_job.slots) end);
    else
      reason := 'running';
      since := v_job.claimed_at;
      until := v_job.lease_until;
      says := format('worker %s claimed it at %s; whether it has started is told by the next beat (the last was at %s)',
        v_who, rowlock.say_when(v_job.claimed_at, p_now), rowlock.say_when(v_job.beat_at, p_now));
    end if;
    return next;
  end if;

  if v_job.started_at is null and isfinite(v_job.expires_at) then
    reason := 'expires';
    since := null;
    until := v_job.expires_at;
    says := format('it is not started after %s', rowlock.say_when(v_job.expires_at, p_now));
    detail := '{}';
    return next;
  end if;
end
$rowlock$;
