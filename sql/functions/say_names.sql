-- Names in a sentence, at most ten of them: a, b and 12 more. Internal.
create or replace function rowlock.say_names(p_names text[]) returns text
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $rowlock$
  select case when cardinality(p_names) > 10
         then format('%s and %s more', array_to_string(p_names[1:10], ', '), cardinality(p_names) - 10)
         else array_to_string(p_names, ', ') end
$rowlock$;
