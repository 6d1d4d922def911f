-- Change settings of a queue: {"retention_days": 0 | 1 | 7 | 30 | 90, "target_wait": interval, "concurrency": 1 to
-- 1,000}. What is absent stays; null is back to the default: 7 days, 1 minute, and of the concurrency as each worker
-- was started with. A new class holds for the jobs that end from now on; its days are made at once. A concurrency is
-- how many handlers of this queue each worker runs at once. Workers that listen take it up at the commit of this, the
-- others with their next heartbeat.
--
-- A queue that nobody has heard of is set all the same: its first job may come later.
-- Errors: RL001, whose path is the setting.
create or replace function rowlock.set_queue(
  p_queue text, p_settings jsonb, p_actor text default null, p_reason text default null) returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $rowlock$
declare
  v_known constant text[] := array['retention_days', 'target_wait', 'concurrency'];
  v_unknown text;
  v_days constant jsonb := p_settings -> 'retention_days';
  v_wait constant jsonb := p_settings -> 'target_wait';
  v_concurrency constant jsonb := p_settings -> 'concurrency';
  v_target interval;
begin
  if p_queue is null or octet_length(p_queue) not between 1 and 100 then
    perform rowlock.refuse('RL001', 'queue must have 1 to 100 bytes', '{"path": "queue"}');
  end if;
  if p_settings is null or jsonb_typeof(p_settings) <> 'object' then
    perform rowlock.refuse('RL001', 'settings must be an object', '{"path": "settings"}');
  end if;
  select k into v_unknown from jsonb_object_keys(p_settings) as k
   where k <> all (v_known) limit 1;
  if found then
    perform rowlock.refuse('RL001', format('unknown setting %s%s', v_unknown,
      rowlock.did_you_mean(v_unknown, v_known)), jsonb_build_object('path', v_unknown));
  end if;
  if v_days not in ('null', '0', '1', '7', '30', '90') then
    perform rowlock.refuse('RL001', 'retention_days must be 0, 1, 7, 30 or 90, or null', '{"path": "retention_days"}');
  end if;
  -- A case, since what is no number cannot be compared.
  if v_concurrency <> 'null' and not (
       case when jsonb_typeof(v_concurrency) = 'number'
         then v_concurrency::numeric between 1 and 1000 and v_concurrency::numeric % 1 = 0
         else false
       end) then
    perform rowlock.refuse('RL001', 'concurrency must be from 1 to 1,000, or null', '{"path": "concurrency"}');
  end if;
  if v_wait <> 'null' then
    -- A number without a unit would be seconds to PostgreSQL and milliseconds to others.
    begin
      v_target := case when jsonb_typeof(v_wait) = 'string' and p_settings ->> 'target_wait' !~ '^[-+ .0-9]*$'
        then (p_settings ->> 'target_wait')::interval end;
    exception when data_exception then
      v_target := null;
    end;
    if v_target is null or v_target not between interval '0' and interval '30 days' then
      perform rowlock.refuse('RL001', 'target_wait must be a length of time with its unit, such as ''30 s'', up to '
        || '30 days, or null', '{"path": "target_wait"}');
    end if;
  end if;

  insert into rowlock.queue (name) values (p_queue) on conflict (name) do nothing;
  update rowlock.queue q
     set retention_days = case when v_days is null then q.retention_days
                               else coalesce((p_settings ->> 'retention_days')::numeric::smallint, 7) end,
         target_wait = case when v_wait is null then q.target_wait else coalesce(v_target, interval '1 minute') end,
         concurrency = case when v_concurrency is null then q.concurrency
                            else (p_settings ->> 'concurrency')::numeric::integer end
   where q.name = p_queue;
  perform rowlock.make_days();
  perform rowlock.note('set_queue', null, p_queue, p_actor, p_reason, p_settings);
  if p_settings ? 'concurrency' then
    perform pg_notify(rowlock.channel(), 'settings ' || p_queue);
  end if;
end
$rowlock$;
