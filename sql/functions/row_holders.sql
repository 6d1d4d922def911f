-- The transactions that have this row locked, or have changed it and not committed. Internal.
--
-- p_xmax: the row's xmax, a transaction or a group of them; p_table: where the row is.
-- Returns: a row a holder. `is_certain` false: one of these is it. `pid` is null for a prepared transaction, which
--   `gid` names. What a session does is null where the owner of Rowlock may not see it, its statement also where the
--   caller may not.
-- Why no lock is tried: it would be held until the caller's transaction ends, or write a row at least, and find nothing
-- where the caller itself is the holder. A holder is a transaction that lives, since it still has the lock of its own
-- id, and has a lock on this table; so neither a number that is used twice, for a transaction and for a group, nor one
-- that is left of a transaction long over is taken for a holder. A savepoint that was released has no lock of its own
-- any more and nothing that tells whose it was: then all are named that are older and have a lock on this table.
create or replace function rowlock.row_holders(p_xmax xid, p_table oid)
returns table (
  pid integer, is_self boolean, is_certain boolean, gid text, application_name text, usename text, state text,
  since timestamptz, doing text, query text)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set jit = off
as $rowlock$
declare
  v_xids xid[] := array[p_xmax];
  v_next bigint;
  v_nested xid;
begin
  if p_xmax::text = '0' or pg_is_in_recovery() then
    return;
  end if;
  begin
    select v_xids || coalesce(array_agg(m.xid), '{}') into v_xids from pg_get_multixact_members(p_xmax) as m;
  exception when others then
    null; -- it is no group of transactions
  end;
  begin
    v_next := pg_snapshot_xmax(pg_current_snapshot())::text::bigint;
    select x.xid into v_nested
      from (select u.xid, (v_next >> 32 << 32) + u.xid::text::bigint as whole from unnest(v_xids) as u (xid)) as x
     where pg_xact_status((case when x.whole > v_next + 2147483648 then x.whole - 4294967296
                                else x.whole end)::text::xid8) = 'in progress'
     limit 1;
  exception when others then
    null; -- it is older than what is known of transactions
  end;
  -- Else a second look within one transaction would see what the first one saw.
  perform pg_stat_clear_snapshot();
  return query
    with locks as materialized (
      select l.locktype, l.pid, l.virtualtransaction, l.transactionid, l.mode, l.relation, l.database
        from pg_locks l
       where l.granted and l.locktype in ('transactionid', 'relation')
    ), living as (
      select l.pid, l.virtualtransaction, l.transactionid, l.transactionid = any (v_xids) as is_certain
        from locks l
       where l.locktype = 'transactionid' and l.mode = 'ExclusiveLock'
         and exists (
               select from locks t
                where t.virtualtransaction = l.virtualtransaction and t.locktype = 'relation'
                  and t.relation = p_table and t.mode <> 'AccessShareLock'
                  and t.database = (select d.oid from pg_database d where d.datname = current_database()))
    ), holders as (
      select distinct l.pid, l.virtualtransaction, l.is_certain
        from living l
       where l.is_certain
          or (v_nested is not null and not exists (select from living c where c.is_certain)
              and age(l.transactionid) > age(v_nested))
    )
    select h.pid, coalesce(h.pid = pg_backend_pid(), false), h.is_certain, p.gid, nullif(a.application_name, ''),
           coalesce(a.usename, p.owner)::text, a.state, coalesce(a.xact_start, p.prepared),
           case when a.state = 'active' and a.wait_event_type is not null
                then format('waits for %s %s', a.wait_event_type, a.wait_event) end,
           case when a.query <> '' and a.state is not null
                 and (pg_has_role(session_user, a.usesysid, 'usage')
                      or pg_has_role(session_user, 'pg_read_all_stats', 'usage')) then left(a.query, 500) end
      from holders h
      left join pg_stat_activity a on a.pid = h.pid
      left join pg_prepared_xacts p
        on h.pid is null
       and exists (
             select from locks t where t.virtualtransaction = h.virtualtransaction and t.transactionid = p.transaction)
     limit 10;
end
$rowlock$;
