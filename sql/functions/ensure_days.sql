-- Make the day of p_now if it is missing: for verbs that write history outside a worker's finish. Internal.
create or replace function rowlock.ensure_days(p_now timestamptz) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $rowlock$
begin
  if not exists (
       select from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where n.nspname = rowlock.schema_name()
          and c.relname = 'finished_7_' || to_char(p_now at time zone 'UTC', 'YYYYMMDD')) then
    perform rowlock.make_days(p_now, 1);
  end if;
end
$rowlock$;
