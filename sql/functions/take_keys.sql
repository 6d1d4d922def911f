-- Take the dedupe keys of these jobs, and say for each job who has its key now: itself, or the live job that had it.
-- A job without a key has itself. Internal.
--
-- Order: by queue and key. Why a second statement, in a loop: a twin that has just committed is not in the snapshot of
-- the insert that met it; one that has just ended its job is in nobody's.
-- Errors: RL011.
create or replace function rowlock.take_keys(p_jobs jsonb, p_ids bigint[]) returns bigint[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $rowlock$
declare
  v_queues text[];
  v_keys text[];
  v_holders bigint[];
begin
  select array_agg(coalesce(g.queue, 'default') order by g.n), array_agg(g.dedupe_key order by g.n)
    into v_queues, v_keys
    from rows from (jsonb_to_recordset(p_jobs) as (queue text, dedupe_key text)) with ordinality
           as g (queue, dedupe_key, n);
  for v_round in 1 .. 10 loop
    insert into rowlock.dedupe (queue, key, job_id)
    select f.queue, f.key, f.id
      from (select distinct on (g.queue, g.key) g.queue, g.key, g.id, g.n
              from unnest(v_queues, v_keys, p_ids, v_holders) with ordinality as g (queue, key, id, holder, n)
             where g.key is not null and g.holder is null
             order by g.queue, g.key, g.n) as f
     order by f.queue, f.key
        on conflict (queue, key) do nothing;
    select array_agg(case when g.key is null then g.id else d.job_id end order by g.n)
      into v_holders
      from unnest(v_queues, v_keys, p_ids) with ordinality as g (queue, key, id, n)
      left join rowlock.dedupe d on d.queue = g.queue and d.key = g.key;
    if array_position(v_holders, null) is null then
      return v_holders;
    end if;
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
      exit; -- The holder is not in this transaction's snapshot and never will be.
    end if;
  end loop;
  perform rowlock.refuse('RL011', 'a dedupe key changes hands too fast, or is held by a job that this transaction cannot see');
end
$rowlock$;
