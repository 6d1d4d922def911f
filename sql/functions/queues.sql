-- What the queues are like: settings, how much waits, runs and is a dead letter in them, who serves them, and how fast.
--
-- p_queue: this one alone, which is a row also where nothing is known of it. Else at most p_limit queues by name, those
--   after p_after.
-- Returns: `due`, `scheduled` and `retryable` exact up to 10,000, `dead_letters` up to 100,000; above that the flag
--   `…_about` is set. A job that is retryable and due counts as both. `running`: claimed jobs, those that still wait
--   for a slot among them. `workers` and `slots`: of living workers that do not drain. `…_per_minute`: what the
--   living ones ended in the last minute. Slots and rates are as their last beats told them. `beyond_target`: the
--   oldest due job waits longer than the queue promises. `is_known`: some job, worker, setting or change names this
--   queue.
--   `next_start_at`: where the rate allows no start now, when it allows the next.
-- Cost: bounded by the queues asked for, not by what waits. Nothing is locked.
create or replace function rowlock.queues(
  p_queue text default null, p_limit integer default 100, p_after text default '')
returns table (
  queue text, is_known boolean, paused_at timestamptz, paused_by text, paused_because text, retention_days smallint,
  target_wait interval, concurrency integer, max_running integer, rate_starts integer, rate_per interval,
  rate_burst integer, next_start_at timestamptz, max_waiting bigint, when_full text,
  due bigint, due_about boolean, scheduled bigint, scheduled_about boolean, retryable bigint, retryable_about boolean,
  running bigint, dead_letters bigint, dead_letters_about boolean,
  oldest_due_at timestamptz, oldest_due_age interval, beyond_target boolean,
  workers integer, slots integer, done_per_minute integer, failed_per_minute integer, retried_per_minute integer)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $rowlock$
declare
  v_now timestamptz := rowlock.now();
  v_running jsonb;
  v_sample jsonb;
  v_about jsonb;
begin
  select jsonb_object_agg(r.queue, r.jobs) into v_running
    from (select r.queue, count(*) as jobs from rowlock.running r group by r.queue) as r;
  for queue in
    select p_queue where p_queue is not null
    union all
    select n from rowlock.queue_names(coalesce(p_after, ''), least(greatest(p_limit, 0), 1000)) as n
     where p_queue is null
  loop
    select p.paused_at, p.paused_by, p.paused_because, coalesce(q.retention_days, 7::smallint),
           coalesce(q.target_wait, interval '1 minute'), q.concurrency, q.max_running, q.rate_starts, q.rate_per,
           q.rate_burst, rowlock.next_start_at(q.rate_starts, q.rate_per, q.rate_burst, t.paid_at, v_now),
           q.max_waiting,
           case when q.max_waiting is not null then coalesce(q.when_full, 'refuse') end, q.name is not null
      into paused_at, paused_by, paused_because, retention_days, target_wait, concurrency, max_running, rate_starts,
           rate_per, rate_burst, next_start_at, max_waiting, when_full, is_known
      from (select queues.queue) as n (queue)
      left join rowlock.queue q on q.name = n.queue
      left join rowlock.throttle t on t.queue = n.queue
      left join rowlock.paused(n.queue) as p on true;

    select c.due, c.due_about, c.scheduled, c.scheduled_about, c.retryable, c.retryable_about, c.oldest_due_at
      into due, due_about, scheduled, scheduled_about, retryable, retryable_about, oldest_due_at
      from rowlock.waiting_counts(queue, v_now) as c;
    if due_about or scheduled_about then
      v_sample := coalesce(v_sample, rowlock.waiting_sample(v_now), '{}');
      v_about := v_sample -> queue;
      due := case when due_about then greatest(due, (v_about ->> 'due')::bigint) else due end;
      scheduled := case
        when scheduled_about then greatest(scheduled, (v_about ->> 'scheduled')::bigint) else scheduled end;
      retryable := greatest(retryable, (v_about ->> 'retryable')::bigint);
    end if;
    oldest_due_age := case when isfinite(oldest_due_at) then v_now - oldest_due_at end;
    beyond_target := coalesce(oldest_due_age > target_wait, false);
    running := coalesce((v_running ->> queue)::bigint, 0);
    select count(*) into dead_letters
      from (select from rowlock.dead_letter d where d.queue = queues.queue limit 100001) as d;
    dead_letters_about := dead_letters > 100000;

    select count(*) filter (where not w.drains), coalesce(sum(w.slots) filter (where not w.drains), 0),
           coalesce(sum(w.done), 0), coalesce(sum(w.failed), 0), coalesce(sum(w.retried), 0)
      into workers, slots, done_per_minute, failed_per_minute, retried_per_minute
      from (select coalesce((w.facts ->> 'draining')::boolean, false) as drains,
                   rowlock.slots_of(t.told, w.queues -> queues.queue, queues.concurrency) as slots,
                   rowlock.figure(t.told, 'done') as done, rowlock.figure(t.told, 'failed') as failed,
                   rowlock.figure(t.told, 'retried') as retried
              from rowlock.worker w
             cross join lateral (select w.facts #> array['by_queue', queues.queue]) as t (told)
             where w.expires_at > v_now and w.queues ? queues.queue) as w;
    is_known := is_known or due + scheduled + retryable + running + dead_letters + workers > 0
             or exists (select from rowlock.worker w where w.expires_at > v_now and w.queues ? queues.queue)
             or exists (select from rowlock.audit a where a.queue = queues.queue);
    return next;
  end loop;
end
$rowlock$;
