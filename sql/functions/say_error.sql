-- The first line of an error as it was thrown, as the end of a sentence, at most 200 characters. Internal.
create or replace function rowlock.say_error(p_error jsonb) returns text
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $rowlock$
  select coalesce(': ' || nullif(left(split_part(ltrim(p_error ->> 'message', E' \t\r\n'), E'\n', 1), 200), ''), '')
$rowlock$;
