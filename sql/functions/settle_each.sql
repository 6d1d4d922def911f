-- Settle these attempts together or, when one of them cannot be written, one by one without it: a row that something
-- in the database refuses must not keep the others. Internal: what the reaper calls.
--
-- Returns: as settle; what was refused is in a warning, and is tried again by the next sweep.
create or replace function rowlock.settle_each(p_endings jsonb, p_now timestamptz) returns jsonb
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $rowlock$
declare
  v_ending jsonb;
  v_moved jsonb := '[]';
begin
  begin
    return rowlock.settle(p_endings, p_now);
  exception when integrity_constraint_violation or data_exception or raise_exception then
    raise warning 'jobs are given back one by one: %', sqlerrm;
  end;
  for v_ending in select e.ending from jsonb_array_elements(p_endings) as e (ending) loop
    begin
      v_moved := v_moved || rowlock.settle(jsonb_build_array(v_ending), p_now);
    exception when integrity_constraint_violation or data_exception or raise_exception then
      raise warning 'job % cannot be given back: %', v_ending ->> 'id', sqlerrm;
    end;
  end loop;
  return v_moved;
end
$rowlock$;
