-- Has a text no white space at its ends, as JavaScript understands white space? Internal.
create or replace function rowlock.is_trimmed(p_text text) returns boolean
language sql immutable
set search_path = pg_catalog, pg_temp
as $rowlock$
  select p_text = btrim(p_text, case when getdatabaseencoding() = 'UTF8' then
    -- blank, no-break space, Ogham, en quad to hair space, separators, narrow and medium spaces, ideographic, mark
    convert_from(decode('20c2a0e19a80e28080e28081e28082e28083e28084e28085e28086e28087e28088e28089e2808ae280a8e280a9'
      || 'e280afe2819fe38080efbbbf', 'hex'), 'UTF8') else ' ' end)
$rowlock$;
