-- The length of time that a setting says, or null where it says none. Internal.
--
-- Why text of digits alone is none: a number without a unit would be seconds to PostgreSQL and milliseconds to others.
create or replace function rowlock.length_of(p_value jsonb) returns interval
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $rowlock$
begin
  if jsonb_typeof(p_value) <> 'string' or p_value #>> '{}' ~ '^[-+ .0-9]*$' then
    return null;
  end if;
  return (p_value #>> '{}')::interval;
exception when data_exception then
  return null;
end
$rowlock$;
