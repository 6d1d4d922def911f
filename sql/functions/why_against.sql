-- What is against a job that runs: its worker's lease is over, its time is, or somebody asked for its end. Internal: a
-- part of why.
create or replace function rowlock.why_against(p_id bigint, p_now timestamptz)
returns table (reason text, says text, since timestamptz, until timestamptz, detail jsonb)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $rowlock$
declare
  v_at record;
  v_job record;
begin
  select h.* into v_at from rowlock.holding(p_id, p_now) as h;
  select r.started_at, r.attempt into v_job from rowlock.running r where r.id = p_id;
  if not v_at.holds then
    reason := 'lease_over';
    since := v_at.lease_until;
    says := case when v_at.is_there
      then format('the lease of worker %s is over since %s (last beat at %s)', v_at.who,
        rowlock.say_when(v_at.lease_until, p_now), rowlock.say_when(v_at.beat_at, p_now))
      else format('worker %s, which had claimed it, is gone', v_at.who) end
      || case
           when v_at.beat_at < pg_postmaster_start_time() and p_now < pg_postmaster_start_time() + v_at.lease
             then format('; the server was away, so the reaper waits until %s for what that worker may still say',
               rowlock.say_when(pg_postmaster_start_time() + v_at.lease, p_now))
           when exists (select from rowlock.worker w where w.expires_at > p_now)
             then '; the next sweep of the worker on duty gives it back'
           else '; no worker lives that would give it back: start one'
         end;
    detail := jsonb_build_object('worker_id', v_at.worker_id, 'attempt', v_job.attempt, 'started', v_job.started_at);
    return next;
  end if;

  if v_at.over_at < p_now then
    reason := 'overdue';
    since := v_at.over_at;
    says := format(
      case when v_at.is_told
           then 'it has run for %s, and may for %s: its signal was given, and its handler has not ended. See the log '
             'of %s for a stuck handler'
           else 'it has run for %s, longer than the default of %s; whether its kind may take longer, worker %s does '
             'not tell, for it is of an older release' end,
      rowlock.say_length(p_now - v_job.started_at), rowlock.say_length(v_at.may_take), v_at.who);
    detail := jsonb_build_object(
      'timeout_ms', rowlock.length_ms(v_at.may_take), 'is_told', v_at.is_told, 'started_at', v_job.started_at);
    return next;
  end if;

  return query
    select 'cancel_requested',
           format('it is to be cancelled, asked at %s%s: its signal is given with the next beat of %s, and it is '
             'cancelled when its handler ends, unless that ends well', rowlock.say_when(c.requested_at, p_now),
             rowlock.say_by(c.actor, c.reason), v_at.who),
           c.requested_at, null::timestamptz, jsonb_build_object('actor', c.actor, 'reason', c.reason)
      from rowlock.cancel_request c where c.job_id = p_id;
end
$rowlock$;
