-- Kinds that wait, due, while no living worker handles them in their queue. The dispatch index is hopped from queue
-- to queue and from kind to kind; the jobs between are not read.
--
-- Returns: at most p_limit rows, of the first 1,000 queues and kinds.
create or replace function rowlock.unhandled(p_limit integer default 50)
returns table (queue text, kind text, due_since timestamptz)
language sql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $rowlock$
  with recursive found (queue, kind) as (
    (select w.queue, w.kind from rowlock.waiting w order by w.queue, w.kind limit 1)
    union all
    select n.queue, n.kind
      from found f
     cross join lateral (
            select w.queue, w.kind
              from rowlock.waiting w
             where (w.queue, w.kind) > (f.queue, f.kind)
             order by w.queue, w.kind
             limit 1) as n
  )
  select f.queue, f.kind, h.available_at
    from (select * from found limit 1000) as f
   cross join lateral (
          select min(l.available_at) as available_at
            from generate_series(-10, 10) as p (priority)
           cross join lateral (
                  select w.available_at from rowlock.waiting w
                   where w.queue = f.queue and w.kind = f.kind and w.priority = p.priority
                   order by w.available_at, w.id limit 1) as l) as h
   where h.available_at <= rowlock.now()
     and not exists (
           select from rowlock.worker k
            where k.expires_at > rowlock.now() and k.queues ? f.queue and f.kind = any (k.kinds))
   limit p_limit
$rowlock$;
