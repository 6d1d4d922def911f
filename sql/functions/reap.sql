-- Give back the jobs of workers whose lease ran out, of workers that are gone, and of handlers' transactions whose
-- session is gone. One reaper at a time.
--
-- Returns: [{"id", "to", "available_at", "worker_id", "cause"}].
-- After an outage longer than a lease nobody could beat: a worker whose last beat is older than the server waits
-- one more lease, so that the outcomes it holds can come in.
-- Only a job known to have started counts a failure.
-- Locks: an advisory lock; rows in running (skip locked: a transaction that completes its job is passed by); workers.
create or replace function rowlock.reap(p_limit integer default 1000) returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $rowlock$
declare
  v_now timestamptz := rowlock.now();
  v_server_start timestamptz := pg_postmaster_start_time();
  v_lost jsonb;
  v_moved jsonb := '[]';
  v_over uuid[];
  v_gone uuid[];
begin
  perform rowlock.require_read_committed('reap');
  if not pg_try_advisory_xact_lock(rowlock.lock_key('reap')) then
    return '[]';
  end if;
  perform rowlock.ensure_days(v_now);
  -- Of sessions, too, it must see those that came since its transaction began.
  perform pg_stat_clear_snapshot();

  v_over := array(
    select w.id from rowlock.worker w
     where w.expires_at <= v_now
       and not (w.beat_at < v_server_start and clock_timestamp() < v_server_start + w.lease)
     order by w.id
       for no key update skip locked);
  select jsonb_agg(jsonb_build_object(
           'id', l.id, 'claim_id', l.claim_id, 'outcome', 'lost', 'cause', 'lease_lost',
           'failed', l.started_at is not null, 'lost', true,
           'error', jsonb_build_object('name', 'LeaseLost', 'message', l.why, 'worker_id', l.worker_id)))
    into v_lost
    from (select r.id, r.claim_id, r.started_at, r.worker_id,
                 case when r.in_transaction and w.expires_at > v_now
                      then 'the session of the handler''s transaction is gone'
                      when w.id is null then 'the worker is gone'
                      else 'the lease of the worker ran out' end as why
            from rowlock.running r
            left join rowlock.worker w on w.id = r.worker_id
           where w.id is null
              or r.worker_id = any (v_over)
              or r.in_transaction and not rowlock.is_session_alive(r.session_pid)
           order by r.id
           limit p_limit
             for update of r skip locked) as l;
  if v_lost is not null then
    select coalesce(jsonb_agg(m.job || jsonb_build_object(
             'worker_id', l.job -> 'error' -> 'worker_id', 'cause', l.job -> 'cause')), '[]')
      into v_moved
      from jsonb_array_elements(rowlock.settle_each(v_lost, v_now)) as m (job)
      join jsonb_array_elements(v_lost) as l (job) on l.job ->> 'id' = m.job ->> 'id';
  end if;

  -- A claim that is in flight holds a key share on its worker: such a worker is skipped until the next sweep.
  v_gone := array(
    select w.id from rowlock.worker w where w.expires_at <= v_now order by w.id for update skip locked);
  delete from rowlock.sleeper s where s.worker_id = any (v_gone);
  delete from rowlock.worker w
   where w.id = any (v_gone) and not exists (select from rowlock.running r where r.worker_id = w.id);
  return v_moved;
end
$rowlock$;
