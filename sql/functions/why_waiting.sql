-- Why a job waits: its time, its queue and the limits of it, whoever has its row; the workers where none of these holds
-- it. One that has expired waits for nothing but to be cancelled. Internal: a part of why.
create or replace function rowlock.why_waiting(p_id bigint, p_now timestamptz)
returns table (reason text, says text, since timestamptz, until timestamptz, detail jsonb)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $rowlock$
declare
  v_job record;
  v_is_held boolean;
begin
  select w.queue, w.expires_at into v_job from rowlock.waiting w where w.id = p_id;
  if v_job.expires_at <= p_now then
    return query
      select 'expired',
             format('it expired at %s, before it started: %s', rowlock.say_when(v_job.expires_at, p_now),
               case when exists (select from rowlock.worker w where w.expires_at > p_now)
                    then 'the next claim or sweep that meets it cancels it'
                    else 'no worker lives that would cancel it: start one' end),
             v_job.expires_at, null::timestamptz, '{}'::jsonb;
    return query select l.* from rowlock.why_locked(p_id, p_now) as l;
    return;
  end if;

  return query select l.* from rowlock.why_later(p_id, p_now) as l;
  v_is_held := found;
  return query
    select 'paused',
           format('queue %s is paused since %s%s. rowlock resume %s lets it run again', v_job.queue,
             rowlock.say_when(q.paused_at, p_now), rowlock.say_by(q.paused_by, q.paused_because),
             rowlock.say_word(v_job.queue)),
           q.paused_at, null::timestamptz,
           jsonb_build_object('queue', v_job.queue, 'actor', q.paused_by, 'reason', q.paused_because)
      from rowlock.paused(v_job.queue) as q where q.paused_at is not null;
  v_is_held := v_is_held or found;
  return query select l.* from rowlock.why_locked(p_id, p_now) as l;
  v_is_held := v_is_held or found;
  return query
    select 'cancel_requested',
           format('it was to be cancelled while it ran, at %s%s: the next sweep of the worker on duty cancels it',
             rowlock.say_when(c.requested_at, p_now), rowlock.say_by(c.actor, c.reason)),
           c.requested_at, null::timestamptz, jsonb_build_object('actor', c.actor, 'reason', c.reason)
      from rowlock.cancel_request c where c.job_id = p_id;
  v_is_held := v_is_held or found;
  return query select l.* from rowlock.why_limited(p_id, p_now) as l;
  v_is_held := v_is_held or found;
  return query select u.* from rowlock.why_unclaimed(p_id, v_is_held, p_now) as u;

  if isfinite(v_job.expires_at) then
    return query
      select 'expires',
             format('it is cancelled at %s, unless it has started by then', rowlock.say_when(v_job.expires_at, p_now)),
             null::timestamptz, v_job.expires_at, '{}'::jsonb;
  end if;
end
$rowlock$;
