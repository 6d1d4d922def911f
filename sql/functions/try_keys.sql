-- One round of take_keys: who has each key now, or null where that changed under our eyes. Internal.
--
-- Keys that somebody has are only read. Missing ones are inserted in their own order; where that met a twin which has
-- just committed, it is not in the snapshot of the insert, so a third statement reads it.
create or replace function rowlock.try_keys(p_queues text[], p_keys text[], p_ids bigint[]) returns bigint[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_indexscan = on
set jit = off
as $rowlock$
declare
  v_holders bigint[];
begin
  select array_agg(case when g.key is null then g.id else d.job_id end order by g.n)
    into v_holders
    from unnest(p_queues, p_keys, p_ids) with ordinality as g (queue, key, id, n)
    left join rowlock.dedupe d on d.queue = g.queue and d.key = g.key;
  if array_position(v_holders, null) is null then
    return v_holders;
  end if;

  with taken as (
    insert into rowlock.dedupe as d (queue, key, job_id)
    select f.queue, f.key, f.id
      from (select distinct on (g.queue, g.key) g.queue, g.key, g.id, g.n
              from unnest(p_queues, p_keys, p_ids, v_holders) with ordinality as g (queue, key, id, holder, n)
             where g.holder is null
             order by g.queue, g.key, g.n) as f
     order by f.queue, f.key
        on conflict (queue, key) do nothing
    returning d.queue, d.key, d.job_id
  )
  select array_agg(coalesce(g.holder, t.job_id) order by g.n)
    into v_holders
    from unnest(p_queues, p_keys, v_holders) with ordinality as g (queue, key, holder, n)
    left join taken t on t.queue = g.queue and t.key = g.key;
  if array_position(v_holders, null) is null then
    return v_holders;
  end if;

  select array_agg(coalesce(g.holder, d.job_id) order by g.n)
    into v_holders
    from unnest(p_queues, p_keys, v_holders) with ordinality as g (queue, key, holder, n)
    left join rowlock.dedupe d on d.queue = g.queue and d.key = g.key;
  return v_holders;
end
$rowlock$;
