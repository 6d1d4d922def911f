-- A name as a word of a command that people copy into a shell. Internal.
create or replace function rowlock.say_word(p_name text) returns text
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $rowlock$
  select case when p_name ~ '^[[:alnum:]_.:@/][[:alnum:]_.:@/-]*$' then p_name
         else '''' || replace(p_name, '''', E'\'\\\'\'') || '''' end
$rowlock$;
