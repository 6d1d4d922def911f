-- A whole number among the facts that a worker tells of itself, or null where it tells none. Internal.
create or replace function rowlock.figure(p_facts jsonb, p_name text) returns integer
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $rowlock$
  select case when jsonb_typeof(p_facts -> p_name) = 'number'
         then greatest(least((p_facts ->> p_name)::numeric, 2147483647), -2147483648)::integer end
$rowlock$;
