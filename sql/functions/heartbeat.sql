-- Extend the worker's lease, record what has started, and bring back what is to be cancelled.
--
-- p_started: as start takes it. p_facts: merged into the worker's facts (slots, lag, whether it drains, and by queue
--   what runs and what ended in the last minute).
-- Returns: {"now", "expires_at", "cancel": [{"id", "reason"}], "duty_in_ms", "settings": {queue: {"concurrency",
--   "limited"}}}, or null when the lease is over: it is lost for ever, and the process takes a new identity.
--   `duty_in_ms`: 0 for the eldest living worker, which maintains; for the others the time until the leases of all
--   elder ones would be over. `settings`: of the queues it serves, those that have a concurrency of their own or
--   limits.
-- Locks: the worker's row, then rows in running (skip locked).
-- Why the row is locked before the clock is read: a beat that waited for it would judge the lease by a time long gone,
-- and bring back one whose end the reaper has seen.
create or replace function rowlock.heartbeat(p_worker_id uuid, p_started jsonb default '[]', p_facts jsonb default '{}')
returns json
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $rowlock$
declare
  v_now timestamptz;
  v_expires_at timestamptz;
  v_started_at timestamptz;
  v_elders_until timestamptz;
  v_cancel json;
  v_queues jsonb;
begin
  perform from rowlock.worker w where w.id = p_worker_id for no key update;
  v_now := rowlock.now();
  update rowlock.worker w
     set beat_at = v_now, expires_at = v_now + w.lease, facts = w.facts || p_facts
   where w.id = p_worker_id and w.expires_at > v_now
  returning w.expires_at, w.started_at, w.queues into v_expires_at, v_started_at, v_queues;
  if not found then
    return null;
  end if;
  select max(w.expires_at) into v_elders_until
    from rowlock.worker w
   where (w.started_at, w.id) < (v_started_at, p_worker_id) and w.expires_at > v_now;
  if p_started <> '[]' then
    perform rowlock.start(p_started);
  end if;
  if exists (select from rowlock.cancel_request) then
    select json_agg(json_build_object('id', r.id::text, 'reason', c.reason))
      into v_cancel
      from rowlock.cancel_request c
      join rowlock.running r on r.id = c.job_id
     where r.worker_id = p_worker_id;
  end if;
  return json_build_object(
    'now', rowlock.ms(v_now), 'expires_at', rowlock.ms(v_expires_at), 'cancel', coalesce(v_cancel, '[]'),
    'duty_in_ms', coalesce(extract(epoch from v_elders_until - v_now) * 1000, 0),
    'settings', rowlock.served_settings(v_queues));
end
$rowlock$;
