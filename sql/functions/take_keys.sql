-- Take the dedupe keys of these jobs, and say for each job who has its key now: itself, or the live job that had it.
-- A job without a key has itself. Internal.
--
-- Order: by queue and key, in each round. Why a round that failed is undone: its keys are held, and a key that comes
-- before them may by now be wanted by somebody who waits for one of them. A call with one key holds nothing to undo,
-- and many of them in one transaction shall not fill it with subtransactions.
-- Errors: RL011.
create or replace function rowlock.take_keys(p_jobs jsonb, p_ids bigint[]) returns bigint[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set jit = off
as $rowlock$
declare
  v_queues text[];
  v_keys text[];
  v_several boolean;
  v_holders bigint[];
begin
  select array_agg(coalesce(g.queue, 'default') order by g.n), array_agg(g.dedupe_key order by g.n),
         count(g.dedupe_key) > 1
    into v_queues, v_keys, v_several
    from rows from (jsonb_to_recordset(p_jobs) as (queue text, dedupe_key text)) with ordinality
           as g (queue, dedupe_key, n);
  for v_round in 1 .. 10 loop
    if v_several then
      begin
        v_holders := rowlock.try_keys(v_queues, v_keys, p_ids);
        if array_position(v_holders, null) is not null then
          raise exception using errcode = 'RL011';
        end if;
      exception when sqlstate 'RL011' then
        -- Another round.
      end;
    else
      v_holders := rowlock.try_keys(v_queues, v_keys, p_ids);
    end if;
    if array_position(v_holders, null) is null then
      return v_holders;
    end if;
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
      exit; -- The holder is not in this transaction's snapshot and never will be.
    end if;
  end loop;
  perform rowlock.refuse('RL011',
    'a dedupe key changes hands too fast, or is held by a job that this transaction cannot see');
end
$rowlock$;
