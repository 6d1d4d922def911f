-- Drop a day of history or of attempts that is due, for a worker whose role does not own the tables. First, call by
-- call, the inputs in payload that belong to its jobs: the next 1,000 jobs behind p_after; then the day itself.
-- The owner detaches a day without stopping writers (src/engine/drop-days.ts), which no function can.
--
-- Returns: the id to go on behind, or null when the day is gone. A day that is not due is left alone.
-- Locks: the day and its parent, exclusively, for a moment; 55P03 after 100 ms, and then nothing was changed.
create or replace function rowlock.drop_day(p_day text, p_after bigint default 0) returns bigint
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '100ms'
as $rowlock$
declare
  v_schema text := rowlock.schema_name();
  v_parent text;
  v_ids bigint[];
begin
  select d.parent into v_parent from rowlock.days_due(null) d where d.day = p_day;
  if not found then
    return null;
  end if;
  if v_parent = 'finished' then
    execute format(
      'select array(select f.id from %I.%I f where f.input is null and f.id > $1 order by f.id limit 1000)',
      v_schema, p_day) into v_ids using p_after;
    if cardinality(v_ids) > 0 then
      delete from rowlock.payload p where p.job_id = any (v_ids);
      return v_ids[cardinality(v_ids)];
    end if;
  end if;
  execute format('drop table %I.%I', v_schema, p_day);
  return null;
end
$rowlock$;
