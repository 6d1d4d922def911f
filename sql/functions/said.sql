-- The same answer for each of these jobs, by id: {"42": ["cancelled", null]}. Internal.
create or replace function rowlock.said(p_ids bigint[], p_answer text) returns jsonb
language sql immutable
set search_path = pg_catalog, pg_temp
as $rowlock$
  select coalesce(jsonb_object_agg(g.id, jsonb_build_array(p_answer, null)), '{}') from unnest(p_ids) as g (id)
$rowlock$;
