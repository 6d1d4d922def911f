-- A worker process begins: its lease, and what it serves.
-- The identity is random per start; nobody takes over another's.
--
-- p_facts: {"name", "release", "queues": {queue: settings}, "kinds": [k …], …}
-- Returns: {"now": ms, "expires_at": ms, "channel": name, "settings": as heartbeat answers them}.
create or replace function rowlock.register(p_worker_id uuid, p_lease interval, p_facts jsonb) returns json
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $rowlock$
declare
  v_now timestamptz := rowlock.now();
begin
  insert into rowlock.worker (id, name, started_at, beat_at, expires_at, lease, release, queues, kinds, facts)
  values (
    p_worker_id, coalesce(p_facts ->> 'name', 'worker'), v_now, v_now, v_now + p_lease, p_lease,
    coalesce(p_facts ->> 'release', ''), coalesce(p_facts -> 'queues', '{}'),
    array(select jsonb_array_elements_text(coalesce(p_facts -> 'kinds', '[]'))),
    p_facts - array['name', 'release', 'queues', 'kinds']);
  return json_build_object(
    'now', rowlock.ms(v_now), 'expires_at', rowlock.ms(v_now + p_lease), 'channel', rowlock.channel(),
    'settings', rowlock.served_settings(p_facts -> 'queues'));
end
$rowlock$;
