-- The channel on which this installation wakes its workers. A digest, since a schema's name may be longer or odder
-- than a channel's may be.
create or replace function rowlock.channel() returns text
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $rowlock$ select 'rowlock_' || left(md5(rowlock.schema_name()), 16) $rowlock$;
