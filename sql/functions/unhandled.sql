-- Kinds that wait, due, in these queues while no living worker handles them there. The queue's index is hopped from
-- kind to kind; the jobs between are not read.
--
-- Returns: at most p_limit rows.
create or replace function rowlock.unhandled(p_queues text[], p_limit integer default 50)
returns table (queue text, kind text, due_since timestamptz)
language sql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $rowlock$
  with recursive found (queue, kind) as (
    select q.queue, (select min(w.kind) from rowlock.waiting w where w.queue = q.queue)
      from unnest(p_queues) as q (queue)
    union all
    select f.queue, (select min(w.kind) from rowlock.waiting w where w.queue = f.queue and w.kind > f.kind)
      from found f
     where f.kind is not null
  )
  select f.queue, f.kind, h.available_at
    from found f
   cross join lateral (
          select min(l.available_at) as available_at
            from generate_series(-10, 10) as p (priority)
           cross join lateral (
                  select w.available_at from rowlock.waiting w
                   where w.queue = f.queue and w.kind = f.kind and w.priority = p.priority
                   order by w.available_at, w.id limit 1) as l) as h
   where f.kind is not null
     and h.available_at <= rowlock.now()
     and not exists (
           select from rowlock.worker k
            where k.expires_at > rowlock.now() and k.queues ? f.queue and f.kind = any (k.kinds))
   limit p_limit
$rowlock$;
