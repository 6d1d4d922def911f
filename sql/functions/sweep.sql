-- What the maintenance loop tidies, each in bounded steps: jobs that expired while they waited, requests to cancel
-- whose job went back to wait, became a dead letter or has ended, kept dedupe keys that are due, flags of workers
-- that are gone; what is older than 90 days of the audit, of bulk changes that ended, and of imports. The pause of a
-- queue that is still paused stays in the audit: it says by whom, and why. A bulk change that nobody has gone on with
-- for 90 days is stopped. Queues that were found full are counted anew, so that those who enqueue need not.
--
-- Returns: {"expired", "cancelled", "keys", "flags", "audit", "bulks", "imports"}: how many of each; those that were
--   stopped count as bulks.
--   A figure equal to p_limit: call again.
-- Locks: rows in waiting, dead_letter and dedupe (skip locked); waits for nobody.
create or replace function rowlock.sweep(p_limit integer default 1000) returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $rowlock$
declare
  v_now timestamptz := rowlock.now();
  v_expired integer;
  v_cancelled integer := 0;
  v_keys integer;
  v_flags integer;
  v_audit integer;
  v_bulks integer;
  v_stopped integer;
  v_imports integer;
  v_request record;
begin
  perform rowlock.require_read_committed('sweep');
  v_expired := cardinality(rowlock.expire(p_limit));

  -- Ended for good: nothing is left to ask.
  delete from rowlock.cancel_request c
   where not exists (select from rowlock.waiting w where w.id = c.job_id)
     and not exists (select from rowlock.running r where r.id = c.job_id)
     and not exists (select from rowlock.dead_letter d where d.id = c.job_id);
  for v_request in
    select c.job_id, c.actor, c.reason
      from rowlock.cancel_request c
     where not exists (select from rowlock.running r where r.id = c.job_id)
     order by c.job_id
     limit p_limit
  loop
    v_cancelled := v_cancelled + cardinality(rowlock.end_waiting(
      array(select w.ctid from rowlock.waiting w where w.id = v_request.job_id for update skip locked),
      v_request.actor, v_request.reason, v_now));
    -- It became a dead letter while the request was in flight: what was asked for is done all the same.
    perform 1 from rowlock.dead_letter d where d.id = v_request.job_id for update skip locked;
    if found then
      perform rowlock.discard(v_request.job_id, v_request.actor, v_request.reason);
      v_cancelled := v_cancelled + 1;
    end if;
    -- A job that was claimed just now keeps its request.
    delete from rowlock.cancel_request c
     where c.job_id = v_request.job_id
       and not exists (select from rowlock.waiting w where w.id = c.job_id)
       and not exists (select from rowlock.running r where r.id = c.job_id)
       and not exists (select from rowlock.dead_letter d where d.id = c.job_id);
  end loop;

  delete from rowlock.dedupe d
   where d.ctid = any (array(
           select k.ctid from rowlock.dedupe k where k.until <= v_now
            order by k.queue, k.key limit p_limit for update skip locked));
  get diagnostics v_keys = row_count;
  delete from rowlock.sleeper s where not exists (select from rowlock.worker w where w.id = s.worker_id);
  get diagnostics v_flags = row_count;
  delete from rowlock.audit a
   where a.id in (
           select o.id
             from rowlock.audit o
            where o.at < v_now - interval '90 days'
              and not (o.verb = 'pause' and exists (
                    select from rowlock.queue q where q.name = o.queue and q.paused_at <= o.at))
            order by o.at
            limit p_limit);
  get diagnostics v_audit = row_count;
  delete from rowlock.bulk b
   where b.id = any (array(
           select o.id from rowlock.bulk o where o.ended_at < v_now - interval '90 days'
            order by o.id limit p_limit for update skip locked));
  get diagnostics v_bulks = row_count;
  update rowlock.bulk b
     set ended_at = v_now, outcome = 'stopped'
   where b.id = any (array(
           select o.id from rowlock.bulk o where o.ended_at is null and o.beat_at < v_now - interval '90 days'
            order by o.id limit p_limit for update skip locked));
  get diagnostics v_stopped = row_count;
  -- One that was given up counts from its last step.
  delete from rowlock.import i
   where i.key = any (array(
           select o.key from rowlock.import o where coalesce(o.ended_at, o.beat_at) < v_now - interval '90 days'
            order by o.key limit p_limit for update skip locked));
  get diagnostics v_imports = row_count;
  delete from rowlock.queue_length l
   where l.ctid = any (array(
           select o.ctid from rowlock.queue_length o
            where not exists (select from rowlock.queue q where q.name = o.queue and q.max_waiting = o.most)
            limit p_limit for update skip locked));
  perform rowlock.measure(q.name, q.max_waiting)
     from rowlock.queue q
    cross join lateral (
           select l.waiting from rowlock.queue_length l
            where l.queue = q.name and l.most = q.max_waiting
            order by l.no desc limit 1) as l
    where q.max_waiting is not null and l.waiting >= q.max_waiting;
  return jsonb_build_object(
    'expired', v_expired, 'cancelled', v_cancelled, 'keys', v_keys, 'flags', v_flags, 'audit', v_audit,
    'bulks', v_bulks + v_stopped, 'imports', v_imports);
end
$rowlock$;
