-- A fault of an option, in the form that job_fault answers. Internal.
create or replace function rowlock.option_fault(p_path text, p_what text) returns jsonb
language sql immutable
set search_path = pg_catalog, pg_temp
as $rowlock$
  select jsonb_build_object('sqlstate', 'RL001', 'path', p_path, 'message', format('%s %s', p_path, p_what))
$rowlock$;
