-- The outcomes of many jobs in one statement: what a worker's reporter sends.
--
-- p_outcomes: {"complete": […], "fail": […], "snooze": […], "hand_back": […], "abandon": […]}, each as its verb takes
--   it; all keys are optional.
-- Returns: {"completed": [ids], "moved": [{"id", "to", "available_at"}]}; what is in neither had another owner.
-- Locks: rows in running, in id order within each verb; nobody who waits for such a row holds another.
-- A missing day of history is made here, once, and the whole is tried again.
create or replace function rowlock.finish(p_outcomes jsonb) returns json
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $rowlock$
declare
  v_completed bigint[] := '{}';
  v_moved jsonb := '[]';
begin
  for v_try in 1 .. 2 loop
    begin
      if p_outcomes ? 'complete' then
        v_completed := rowlock.complete(p_outcomes -> 'complete');
      end if;
      if p_outcomes ? 'fail' then
        v_moved := v_moved || rowlock.fail(p_outcomes -> 'fail');
      end if;
      if p_outcomes ? 'snooze' then
        v_moved := v_moved || rowlock.snooze(p_outcomes -> 'snooze');
      end if;
      if p_outcomes ? 'hand_back' then
        v_moved := v_moved || rowlock.hand_back(p_outcomes -> 'hand_back');
      end if;
      if p_outcomes ? 'abandon' then
        v_moved := v_moved || rowlock.abandon(p_outcomes -> 'abandon');
      end if;
      exit;
    exception when check_violation then
      if v_try = 2 then
        raise;
      end if;
      v_moved := '[]';
      perform rowlock.make_days(rowlock.now(), 1);
    end;
  end loop;
  return json_build_object('completed', v_completed::text[], 'moved', v_moved);
end
$rowlock$;
