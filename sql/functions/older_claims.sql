-- Whether a claim is on its way whose transaction is older than this one. Internal.
--
-- Why by locks: a claim locks its worker's row first, and reads what is set for its queues after that. Whoever holds
-- that lock and is older may have read what was set before. Other old transactions do not matter, and may be of hours.
create or replace function rowlock.older_claims(p_than xid8) returns boolean
language sql volatile
set search_path = pg_catalog, pg_temp
as $rowlock$
  select exists (
    select from pg_locks l
      join pg_locks t on t.virtualtransaction = l.virtualtransaction and t.locktype = 'transactionid'
     where l.locktype = 'relation' and l.relation = 'rowlock.worker'::regclass and l.mode = 'RowShareLock'
       and l.database = (select d.oid from pg_database d where d.datname = current_database())
       and l.pid <> pg_backend_pid()
       and t.transactionid = any (array(
             select o::xid from pg_snapshot_xip(pg_current_snapshot()) as o where o < p_than)))
$rowlock$;
