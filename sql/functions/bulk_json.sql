-- A bulk change as JSON: ids as text, and of what is to be tried once more only how many. Internal.
create or replace function rowlock.bulk_json(p_bulk rowlock.bulk) returns jsonb
language sql stable
set search_path = pg_catalog, pg_temp
as $rowlock$
  select to_jsonb(p_bulk) || jsonb_build_object(
    'id', p_bulk.id::text, 'upto_id', p_bulk.upto_id::text, 'after_id', p_bulk.after_id::text,
    'again', cardinality(p_bulk.again))
$rowlock$;
