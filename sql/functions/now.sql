-- The one clock: the database's wall clock, read once per verb. Tests of the owner replace this function.
create or replace function rowlock.now() returns timestamptz
language sql volatile parallel safe
as $rowlock$ select pg_catalog.clock_timestamp() $rowlock$;
