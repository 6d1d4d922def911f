-- Of jobs that are about to be stored, those for whom their queue is full: refuse all, or drop those, as the queue's
-- setting says. Internal.
--
-- p_ids: of the jobs, in order. p_holders: as take_keys answers: a job that is not created needs no room.
-- Returns: p_holders, with null for each job that is dropped, and for each whose key a dropped one of this call had.
-- Transaction: the keys of dropped jobs are given up; nobody else has seen them.
-- Errors: RL018, with the index of the first job in question. A call is judged once: what finds room goes in whole.
create or replace function rowlock.turn_away(p_jobs jsonb, p_ids bigint[], p_holders bigint[]) returns bigint[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $rowlock$
declare
  v_holders bigint[] := p_holders;
  v_queue record;
  v_dropped bigint[];
begin
  for v_queue in
    select q.name, q.max_waiting, q.when_full, g.places, g.keys
      from rowlock.queue q
     cross join lateral (
            select array_agg(j.n order by j.n) as places,
                   array_agg(j.dedupe_key) filter (where j.dedupe_key is not null) as keys
              from rows from (jsonb_to_recordset(p_jobs) as (queue text, dedupe_key text)) with ordinality
                     as j (queue, dedupe_key, n)
             where coalesce(j.queue, 'default') = q.name and p_ids[j.n] = p_holders[j.n]) as g
     where q.max_waiting is not null and g.places is not null
     order by q.name
  loop
    continue when not rowlock.is_full(v_queue.name, v_queue.max_waiting);
    if v_queue.when_full is distinct from 'drop' then
      perform rowlock.refuse_full(v_queue.name, v_queue.max_waiting, v_queue.places[1] - 1);
    end if;
    v_dropped := array(select p_ids[p.n] from unnest(v_queue.places) as p (n));
    delete from rowlock.dedupe d
     where d.queue = v_queue.name and d.key = any (v_queue.keys) and d.job_id = any (v_dropped);
    v_holders := array(
      select case when h.id = any (v_dropped) then null else h.id end
        from unnest(v_holders) with ordinality as h (id, n)
       order by h.n);
  end loop;
  return v_holders;
end
$rowlock$;
