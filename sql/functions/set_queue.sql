-- Change settings of a queue: {"retention_days": 0 | 1 | 7 | 30 | 90, "target_wait": interval, "concurrency": 1 to
-- 1,000 | null}. What is absent stays. A new class holds for the jobs that end from now on; its days are made at once.
-- A concurrency is how many handlers of this queue each worker runs at once; null: as each was started with. Workers
-- that listen take it up at the commit of this, the others with their next heartbeat.
--
-- Errors: RL001.
create or replace function rowlock.set_queue(
  p_queue text, p_settings jsonb, p_actor text default null, p_reason text default null) returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $rowlock$
declare
  v_known constant text[] := array['retention_days', 'target_wait', 'concurrency'];
  v_unknown text;
begin
  if p_settings is null or jsonb_typeof(p_settings) <> 'object' then
    perform rowlock.refuse('RL001', 'settings must be an object', '{"path": "settings"}');
  end if;
  select k into v_unknown from jsonb_object_keys(p_settings) as k
   where k <> all (v_known) limit 1;
  if found then
    perform rowlock.refuse('RL001', format('unknown setting %s%s', v_unknown,
      rowlock.did_you_mean(v_unknown, v_known)), jsonb_build_object('path', v_unknown));
  end if;
  begin
    insert into rowlock.queue (name) values (p_queue) on conflict (name) do nothing;
    update rowlock.queue q
       set retention_days = coalesce((p_settings ->> 'retention_days')::smallint, q.retention_days),
           target_wait = coalesce((p_settings ->> 'target_wait')::interval, q.target_wait),
           concurrency = case
             when p_settings ? 'concurrency' then (p_settings ->> 'concurrency')::integer else q.concurrency
           end
     where q.name = p_queue;
  exception when check_violation or not_null_violation or data_exception then
    perform rowlock.refuse('RL001', format('a setting of queue %s is out of range: %s', p_queue, sqlerrm),
      '{"path": "settings"}');
  end;
  perform rowlock.make_days();
  perform rowlock.note('set_queue', null, p_queue, p_actor, p_reason, p_settings);
  if p_settings ? 'concurrency' then
    perform pg_notify(rowlock.channel(), 'settings ' || p_queue);
  end if;
end
$rowlock$;
