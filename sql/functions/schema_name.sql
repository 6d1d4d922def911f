-- The name of the schema this installation lives in, whatever it is, without a literal of it in any function. Internal.
create or replace function rowlock.schema_name() returns text
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $rowlock$
  select n.nspname::text
    from rowlock.installation i
    join pg_class c on c.oid = i.tableoid
    join pg_namespace n on n.oid = c.relnamespace
   limit 1
$rowlock$;
