-- Take these dedupe keys, in rounds, and say for each who has it now: the job it was to be for, or the live job that
-- had it; null where it changed hands in each of ten rounds. A job without a key has itself. Internal.
--
-- Order: by queue and key, in each round. Why a round that failed is undone: its keys are held, and a key that comes
-- before them may by now be wanted by somebody who waits for one of them. For the same reason a transaction of ours
-- that holds keys takes no more. A call with one key holds nothing to undo, and many of them in one transaction shall
-- not fill it with subtransactions.
create or replace function rowlock.win_keys(p_queues text[], p_keys text[], p_ids bigint[]) returns bigint[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set jit = off
as $rowlock$
declare
  v_several boolean := (select count(g.key) > 1 from unnest(p_keys) as g (key));
  v_strict boolean := current_setting('transaction_isolation') not in ('read committed', 'read uncommitted');
  v_holders bigint[];
begin
  for v_round in 1 .. 10 loop
    if v_several and v_round < 10 and not v_strict then
      begin
        v_holders := rowlock.try_keys(p_queues, p_keys, p_ids);
        if array_position(v_holders, null) is null then
          return v_holders;
        end if;
        raise exception using errcode = 'RL011';
      exception when sqlstate 'RL011' then
        -- Another round.
      end;
    else
      v_holders := rowlock.try_keys(p_queues, p_keys, p_ids);
      -- Under a stricter isolation the holder is not in this transaction's snapshot and never will be.
      exit when array_position(v_holders, null) is null or v_strict;
    end if;
  end loop;
  return v_holders;
end
$rowlock$;
