-- How many jobs of a queue are due, scheduled and retryable: exact up to 10,000 of each; `about` where at least so many
-- were seen. At most 10,000 due ones and 10,000 that are ahead are read. Internal.
create or replace function rowlock.waiting_counts(p_queue text, p_now timestamptz)
returns table (
  due bigint, due_about boolean, scheduled bigint, scheduled_about boolean, retryable bigint, retryable_about boolean,
  oldest_due_at timestamptz)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
set plan_cache_mode = force_generic_plan
as $rowlock$
declare
  v_most constant integer := 10000;
  v_kinds text[];
  v_priorities smallint[];
  v_ahead bigint;
  v_retry bigint;
begin
  select array_agg(l.kind), array_agg(l.priority), min(l.available_at)
    into v_kinds, v_priorities, oldest_due_at
    from rowlock.lines(p_queue, 2000) as l;
  if oldest_due_at > p_now then
    oldest_due_at := null;
  end if;
  select count(*), count(n.cause) into due, retryable
    from (select w.cause
            from unnest(v_kinds, v_priorities) as l (kind, priority)
           cross join lateral (
                  select w.cause
                    from rowlock.waiting w
                   where w.queue = p_queue and w.kind = l.kind and w.priority = l.priority
                     and w.available_at <= p_now
                   order by w.available_at, w.id
                   limit v_most + 1) as w
           limit v_most + 1) as n;
  select count(*), count(n.cause) into v_ahead, v_retry
    from (select w.cause
            from unnest(v_kinds, v_priorities) as l (kind, priority)
           cross join lateral (
                  select w.cause
                    from rowlock.waiting w
                   where w.queue = p_queue and w.kind = l.kind and w.priority = l.priority
                     and w.available_at > p_now
                   order by w.available_at, w.id
                   limit v_most + 1) as w
           limit v_most + 1) as n;
  due_about := due > v_most or cardinality(v_kinds) >= 2000;
  scheduled := v_ahead - v_retry;
  scheduled_about := v_ahead > v_most or cardinality(v_kinds) >= 2000;
  retryable := retryable + v_retry;
  retryable_about := due_about or scheduled_about;
  due_about := coalesce(due_about, false);
  scheduled_about := coalesce(scheduled_about, false);
  retryable_about := coalesce(retryable_about, false);
  return next;
end
$rowlock$;
