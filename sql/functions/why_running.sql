-- How a job runs: on which worker, since when, until when; before that, what is against it. Internal: a part of why.
create or replace function rowlock.why_running(p_id bigint, p_now timestamptz)
returns table (reason text, says text, since timestamptz, until timestamptz, detail jsonb)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $rowlock$
declare
  v_at record;
  v_job record;
  v_session record;
begin
  return query select a.* from rowlock.why_against(p_id, p_now) as a;
  select h.* into v_at from rowlock.holding(p_id, p_now) as h;
  select r.*, r.xmax as locked_by, r.tableoid as relation into v_job from rowlock.running r where r.id = p_id;
  detail := jsonb_strip_nulls(jsonb_build_object(
    'worker_id', v_at.worker_id, 'worker', v_at.name, 'attempt', v_job.attempt, 'claimed_at', v_job.claimed_at,
    'started_at', v_job.started_at, 'lease_until', v_at.lease_until, 'in_transaction', v_job.in_transaction,
    'held', v_at.held, 'slots', v_at.slots));
  if not v_at.holds then
    null; -- what its worker did with it is over
  elsif v_job.started_at is not null then
    reason := 'running';
    since := v_job.started_at;
    until := v_at.over_at;
    says := format('attempt %s runs on worker %s since %s; it may take until %s%s. The lease holds until %s',
      v_job.attempt, v_at.who, rowlock.say_when(v_job.started_at, p_now), rowlock.say_when(v_at.over_at, p_now),
      case when v_at.is_told then '' else ', unless its handler says otherwise' end,
      rowlock.say_when(v_at.lease_until, p_now));
    if v_job.in_transaction then
      select h.* into v_session from rowlock.row_holders(v_job.locked_by, v_job.relation) as h limit 1;
      says := says || '; its transaction is ' || coalesce('that of pid ' || nullif(
        concat_ws(', ', v_session.pid, nullif(concat_ws(' and ', v_session.state, v_session.doing), '')), ''), 'gone');
      detail := detail || jsonb_build_object('session', jsonb_strip_nulls(to_jsonb(v_session)));
    end if;
    return next;
  else
    since := v_job.claimed_at;
    until := v_at.lease_until;
    reason := case
      when v_at.beat_at > v_job.claimed_at
       and (v_at.held + v_at.stuck > v_at.slots or v_job.losses >= 2 or v_at.slots is null) then 'prefetched'
      else 'running' end;
    says := format('worker %s claimed it at %s', v_at.who, rowlock.say_when(v_job.claimed_at, p_now)) || case
      when reason = 'running'
        then format('; whether it has started is told by the next beat (the last was at %s)',
          rowlock.say_when(v_at.beat_at, p_now))
      when v_job.losses >= 2 then ' and has not started it: it waits until the others there have ended, to run alone'
      else format(' and has not started it: it waits for a free slot there (%s jobs of queue %s for %s slots%s)',
        v_at.held, v_job.queue, v_at.slots,
        case when v_at.stuck > 0
             then format(', %s of them held by handlers that ignored their signal: restart it', v_at.stuck) else '' end)
      end;
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
