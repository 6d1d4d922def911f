-- Whether a value is a whole number within bounds. Internal.
create or replace function rowlock.is_whole(p_value jsonb, p_min bigint, p_max bigint) returns boolean
language sql immutable
set search_path = pg_catalog, pg_temp
as $rowlock$
  -- A case, since what is no number cannot be compared.
  select case when jsonb_typeof(p_value) = 'number'
           then p_value::numeric between p_min and p_max and p_value::numeric % 1 = 0
           else false
         end
$rowlock$;
