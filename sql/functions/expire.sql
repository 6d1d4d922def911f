-- Cancel jobs that are too late: their `expires_at` passed while they waited.
-- The claim does the same to those it meets.
--
-- Returns: their ids.
-- Locks: rows in waiting (skip locked).
create or replace function rowlock.expire(p_limit integer default 1000) returns bigint[]
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $rowlock$
declare
  v_now timestamptz := rowlock.now();
  v_tids tid[];
begin
  perform rowlock.require_read_committed('expire');
  v_tids := array(
    select w.ctid from rowlock.waiting w
     where w.expires_at <= v_now
     order by w.expires_at
     limit p_limit
       for update skip locked);
  return case when v_tids = '{}' then '{}'::bigint[] else rowlock.end_waiting(v_tids, null, 'expired', v_now) end;
end
$rowlock$;
