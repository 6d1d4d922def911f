-- Those of these jobs that have no answer yet, in order. Internal.
create or replace function rowlock.unsaid(p_ids bigint[], p_said jsonb) returns bigint[]
language sql immutable
set search_path = pg_catalog, pg_temp
as $rowlock$
  select array(select g.id from unnest(p_ids) as g (id) where not p_said ? g.id::text order by g.id)
$rowlock$;
