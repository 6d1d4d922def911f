-- The lines that have jobs waiting, of one queue or of all, each with the instant of its head. The dispatch index is
-- hopped from line to line; the jobs between are not read. Internal.
--
-- Returns: at most p_limit lines, by queue, kind and falling priority.
create or replace function rowlock.lines(p_queue text default null, p_limit integer default 1000)
returns table (queue text, kind text, priority smallint, available_at timestamptz)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
set plan_cache_mode = force_generic_plan
as $rowlock$
declare
  v_head record;
  v_next record;
begin
  select w.queue, w.kind, w.priority, w.available_at into v_head
    from rowlock.waiting w
   where w.queue >= coalesce(p_queue, '')
   order by w.queue, w.kind, w.priority desc, w.available_at, w.id
   limit 1;
  for v_count in 1 .. p_limit loop
    exit when v_head.queue is null or v_head.queue <> p_queue;
    queue := v_head.queue;
    kind := v_head.kind;
    priority := v_head.priority;
    available_at := v_head.available_at;
    return next;
    -- The next priority of this kind, else the next kind of this queue, else the next queue.
    select w.queue, w.kind, w.priority, w.available_at into v_next
      from rowlock.waiting w
     where w.queue = v_head.queue and w.kind = v_head.kind and w.priority < v_head.priority
     order by w.queue, w.kind, w.priority desc, w.available_at, w.id
     limit 1;
    if not found then
      select w.queue, w.kind, w.priority, w.available_at into v_next
        from rowlock.waiting w
       where w.queue = v_head.queue and w.kind > v_head.kind
       order by w.queue, w.kind, w.priority desc, w.available_at, w.id
       limit 1;
    end if;
    if not found then
      exit when p_queue is not null;
      select w.queue, w.kind, w.priority, w.available_at into v_next
        from rowlock.waiting w
       where w.queue > v_head.queue
       order by w.queue, w.kind, w.priority desc, w.available_at, w.id
       limit 1;
    end if;
    v_head := v_next;
  end loop;
end
$rowlock$;
