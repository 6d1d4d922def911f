-- Is there a session of this database with this process id? Null: nobody knows, which counts as no. Internal.
--
-- The lock that a handler's transaction holds on its job's row says that its session lives; that there is none does not
-- say that it is gone: a statement that fails ends the transaction at once, and with it the lock, while the handler
-- goes on. The number may be another session's by now: then its worker gives the job back, or the lease decides.
-- What it sees is as old as the first look at statistics in this transaction: clear the snapshot before.
-- Locks: nothing.
create or replace function rowlock.is_session_alive(p_pid integer) returns boolean
language sql volatile
set search_path = pg_catalog, pg_temp
as $rowlock$
  select p_pid is not null and exists (
    select from pg_stat_get_activity(p_pid) as a
      join pg_database d on d.oid = a.datid
     where d.datname = current_database())
$rowlock$;
