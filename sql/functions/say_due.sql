-- When a job is due, as the end of a sentence: due at 14:02:05 UTC (in 3 h), or never due. Internal.
create or replace function rowlock.say_due(p_at timestamptz, p_now timestamptz) returns text
language sql stable parallel safe
set search_path = pg_catalog, pg_temp
as $rowlock$
  select case when p_at = 'infinity' then 'never due' else 'due at ' || rowlock.say_when(p_at, p_now) end
$rowlock$;
