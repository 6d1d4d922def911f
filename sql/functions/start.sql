-- Record which claimed jobs have started. The heartbeat carries it, so a short job costs no write of its own; a job
-- that must count as started from the first moment (one that is claimed alone, one in a transaction) is named before
-- its handler is called.
--
-- p_jobs: [{"id", "claim_id", "ago_ms"?, "in_transaction"?, "session_pid"?}]; false takes the mark back, before a
--   worker ends the session itself and says what became of the job. `session_pid` is the server's process of it.
-- Returns: ["id" …]: those that are still held under these claims.
-- Locks: rows in running, in id order, skip locked: the heartbeat must not wait. A skipped row is told next time.
create or replace function rowlock.start(p_jobs jsonb) returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $rowlock$
declare
  v_now timestamptz := rowlock.now();
  v_tids tid[];
  v_ids jsonb;
begin
  v_tids := array(
    select r.ctid
      from rowlock.running r
     where r.id = any (array(select g.id from jsonb_to_recordset(p_jobs) as g (id bigint)))
     order by r.id
       for no key update skip locked);
  with changed as (
    update rowlock.running r
       set started_at = coalesce(r.started_at,
             greatest(r.claimed_at, v_now - coalesce(g.ago_ms, 0) * interval '1 ms')),
           in_transaction = coalesce(g.in_transaction, r.in_transaction),
           session_pid = case
             when g.in_transaction is null then r.session_pid
             when g.in_transaction then g.session_pid
           end
      from jsonb_to_recordset(p_jobs)
             as g (id bigint, claim_id uuid, ago_ms double precision, in_transaction boolean, session_pid integer)
     where r.ctid = any (v_tids) and r.id = g.id and r.claim_id = g.claim_id
    returning r.id
  )
  select jsonb_agg(c.id::text) into v_ids from changed c;
  return coalesce(v_ids, '[]');
end
$rowlock$;
