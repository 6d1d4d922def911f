-- The nearest known word, as the end of a sentence, or nothing: compares by the trigrams of letters they share.
-- Internal; no extension is needed for it.
create or replace function rowlock.did_you_mean(p_word text, p_known text[]) returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $rowlock$
  select coalesce((
    select format('; did you mean %s?', k.word)
      from unnest(p_known) as k (word)
     cross join lateral (
            select count(*) as shared
              from (select substr('  ' || replace(lower(p_word), '_', '') || ' ', n, 3)
                      from generate_series(1, length(p_word) + 1) as n
                    intersect
                    select substr('  ' || replace(lower(k.word), '_', '') || ' ', n, 3)
                      from generate_series(1, length(k.word) + 1) as n) as s
           ) as t
     where t.shared >= 2
     order by t.shared desc, abs(length(k.word) - length(p_word))
     limit 1), '')
$rowlock$;
