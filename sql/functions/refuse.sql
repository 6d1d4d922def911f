-- Raise an error of Rowlock: SQLSTATE class RL, and as detail the JSON of what the error knows. Internal.
create or replace function rowlock.refuse(p_sqlstate text, p_message text, p_detail jsonb default '{}') returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $rowlock$
begin
  raise exception using errcode = p_sqlstate, message = p_message, detail = p_detail::text;
end
$rowlock$;
