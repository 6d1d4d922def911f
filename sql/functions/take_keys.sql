-- Take the dedupe keys of these jobs, and say for each job who has its key now: itself, or the live job that had it.
-- A job without a key has itself. Internal.
--
-- Order: by queue and key.
-- Errors: RL011.
create or replace function rowlock.take_keys(p_jobs jsonb, p_ids bigint[]) returns bigint[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
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
  v_holders := rowlock.win_keys(v_queues, v_keys, p_ids);
  if array_position(v_holders, null) is not null then
    perform rowlock.refuse('RL011',
      'a dedupe key changes hands too fast, or is held by a job that this transaction cannot see');
  end if;
  return v_holders;
end
$rowlock$;
