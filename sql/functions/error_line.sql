-- The line that dead letters are grouped by: the first of an error's message, each run of digits a `#`, at most 200
-- characters; null where there is no message. `order 4711 not found` and `order 4712 not found` are one fault.
-- Without a search path, so that it can be put in line: it stands before 20,000 dead letters in one look.
create or replace function rowlock.error_line(p_error jsonb) returns text
language sql immutable parallel safe
as $rowlock$
  select pg_catalog."left"(pg_catalog.regexp_replace(pg_catalog.rtrim(pg_catalog."left"(pg_catalog.split_part(
           pg_catalog.ltrim(pg_catalog.jsonb_extract_path_text(p_error, 'message'), E' \t\r\n'), E'\n', 1), 400),
           E' \t\r'), '[0-9]+', '#', 'g'), 200)
$rowlock$;
