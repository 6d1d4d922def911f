-- One text or a list of texts, as a filter has them, as an array; null when there is none. Internal.
create or replace function rowlock.texts(p_value jsonb) returns text[]
language sql immutable
set search_path = pg_catalog, pg_temp
as $rowlock$
  select case jsonb_typeof(p_value)
           when 'array' then array(select e from jsonb_array_elements_text(p_value) as e)
           when 'string' then array[p_value #>> '{}']
         end
$rowlock$;
