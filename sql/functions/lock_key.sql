-- The key of an advisory lock of this installation for one purpose. Locks are always transaction-scoped: a
-- session's lock outlives its client behind a transaction pooler. Internal.
create or replace function rowlock.lock_key(p_purpose text) returns bigint
language sql stable
set search_path = pg_catalog, pg_temp
as $rowlock$ select hashtextextended('rowlock ' || p_purpose || ' ' || rowlock.schema_name(), 0) $rowlock$;
