-- Make the day of p_now if a table of it is missing:
-- for verbs that write history outside a worker's finish. Internal.
create or replace function rowlock.ensure_days(p_now timestamptz) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $rowlock$
declare
  v_schema text := rowlock.schema_name();
begin
  if exists (
       select from rowlock.day_tables(p_now, 1) as t where to_regclass(format('%I.%I', v_schema, t.name)) is null) then
    perform rowlock.make_days(p_now, 1);
  end if;
end
$rowlock$;
