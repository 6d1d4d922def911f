-- Who did it and why, as the end of a sentence: by ana: provider down. Internal.
create or replace function rowlock.say_by(p_actor text, p_reason text) returns text
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $rowlock$ select coalesce(' by ' || nullif(p_actor, ''), '') || coalesce(': ' || nullif(p_reason, ''), '') $rowlock$;
