-- Change settings of a queue: {"retention_days": 0 | 1 | 7 | 30 | 90, "target_wait": interval, "concurrency": 1 to
-- 1,000, "max_running": 1 to 100,000, "rate": {"starts": 1 to 100,000, "per": 1 ms to 30 days, "burst": 1 to 100,000},
-- "max_waiting": 1 to 1,000,000,000, "when_full": "refuse" | "drop"}. What is absent stays; null is back to the
-- default: 7 days, 1 minute, of the concurrency as each worker was started with, and no limits. A new class holds for
-- the jobs that end from now on; its days are made at once. A concurrency is how many handlers of this queue each
-- worker runs at once. Workers that listen take it up at the commit of this, the others with their next heartbeat.
--
-- A queue that nobody has heard of is set all the same: its first job may come later.
-- `max_running` is how many jobs of the queue run at once over all workers, `rate` how many start in a time: in any
-- time t at most starts * t / per + burst; without a burst that of a tenth of a second, and at least 1. Both hold from
-- the commit of this on; jobs that run by then count, and go on.
-- Transaction: may run in the caller's; from a limit's change to its commit nothing of the queue starts.
-- Errors: RL001, whose path is the setting.
create or replace function rowlock.set_queue(
  p_queue text, p_settings jsonb, p_actor text default null, p_reason text default null) returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $rowlock$
declare
  v_known constant text[] := array['retention_days', 'target_wait', 'concurrency', 'max_running', 'rate',
    'max_waiting', 'when_full'];
  v_unknown text;
  v_days constant jsonb := p_settings -> 'retention_days';
  v_wait constant jsonb := p_settings -> 'target_wait';
  v_concurrency constant jsonb := p_settings -> 'concurrency';
  v_running constant jsonb := p_settings -> 'max_running';
  v_rate constant jsonb := p_settings -> 'rate';
  v_waiting constant jsonb := p_settings -> 'max_waiting';
  v_target interval;
  v_per interval;
  v_before rowlock.queue;
  v_fault jsonb;
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
  if v_concurrency <> 'null' and not rowlock.is_whole(v_concurrency, 1, 1000) then
    perform rowlock.refuse('RL001', 'concurrency must be from 1 to 1,000, or null', '{"path": "concurrency"}');
  end if;
  if v_wait <> 'null' then
    v_target := rowlock.length_of(v_wait);
    if v_target is null or v_target not between interval '0' and interval '30 days' then
      perform rowlock.refuse('RL001', 'target_wait must be a length of time with its unit, such as ''30 s'', up to '
        || '30 days, or null', '{"path": "target_wait"}');
    end if;
  end if;

  insert into rowlock.queue (name) values (p_queue) on conflict (name) do nothing;
  select q.* into v_before from rowlock.queue q where q.name = p_queue for no key update;
  v_fault := rowlock.limits_fault(p_settings, v_before.max_waiting is not null);
  if v_fault is not null then
    perform rowlock.refuse('RL001', v_fault ->> 'message', v_fault - 'sqlstate' - 'message');
  end if;
  v_per := rowlock.length_of(v_rate -> 'per');
  update rowlock.queue q
     set retention_days = case when v_days is null then q.retention_days
                               else coalesce((p_settings ->> 'retention_days')::numeric::smallint, 7) end,
         target_wait = case when v_wait is null then q.target_wait else coalesce(v_target, interval '1 minute') end,
         concurrency = case when v_concurrency is null then q.concurrency
                            else (p_settings ->> 'concurrency')::numeric::integer end,
         max_running = case when v_running is null then q.max_running
                            else (p_settings ->> 'max_running')::numeric::integer end,
         rate_starts = case when v_rate is null then q.rate_starts
                            else (v_rate ->> 'starts')::numeric::integer end,
         rate_per = case when v_rate is null then q.rate_per else v_per end,
         rate_burst = case when v_rate is null then q.rate_burst
                           when v_rate <> 'null' then coalesce((v_rate ->> 'burst')::numeric, greatest(1, least(100000,
                                  trunc((v_rate ->> 'starts')::numeric / extract(epoch from v_per) / 10))))::integer
                      end,
         max_waiting = case when v_waiting is null then q.max_waiting
                            else (p_settings ->> 'max_waiting')::numeric::bigint end,
         when_full = case when v_waiting = 'null' then null
                          when p_settings ? 'when_full' then p_settings ->> 'when_full'
                          else q.when_full end
   where q.name = p_queue;
  if v_running <> 'null' or v_rate <> 'null' then
    -- It waits for the claims that are on their way under the limits of before.
    insert into rowlock.throttle as t (queue) values (p_queue)
        on conflict (queue) do update
       set is_settled = t.is_settled and v_before.max_running is not null,
           mark = case when v_before.max_running is not null then t.mark end;
  end if;
  perform rowlock.make_days();
  perform rowlock.note('set_queue', null, p_queue, p_actor, p_reason, p_settings);
  if p_settings ?| array['concurrency', 'max_running', 'rate'] then
    perform pg_notify(rowlock.channel(), 'settings ' || p_queue);
  end if;
  if p_settings ?| array['max_running', 'rate'] then
    perform rowlock.wake(array[p_queue], '-infinity');
  end if;
end
$rowlock$;
