-- Give a dead letter up: it moves to history as cancelled, reason `discarded`.
--
-- Transaction: may run in the caller's. Locks: the row in dead_letter.
-- Errors: RL010, RL012, RL030.
create or replace function rowlock.discard(p_id bigint, p_actor text default null, p_reason text default null)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $rowlock$
declare
  v_now timestamptz := rowlock.now();
  v_kept boolean;
  v_state text;
begin
  perform rowlock.require_read_committed('discard');
  perform rowlock.ensure_days(v_now);
  with gone as (
    delete from rowlock.dead_letter d where d.id = p_id returning d.*
  ), kept as (
    insert into rowlock.finished (
      id, finished_at, claimed_at, started_at, available_at, enqueued_at, retried_from, worker_id, timeout, attempt,
      priority, failures, max_attempts, retention_days, state, queue, kind, tenant_id, dedupe_key, idempotency_key,
      cause, actor, reason, backoff, metadata, input)
    select g.id, v_now, g.claimed_at, g.started_at, g.available_at, g.enqueued_at, g.retried_from, g.worker_id,
           g.timeout, g.attempt, g.priority, g.failures, g.max_attempts, coalesce(q.retention_days, 7), 'cancelled',
           g.queue, g.kind, g.tenant_id, g.dedupe_key, g.idempotency_key, g.cause, left(p_actor, 200), 'discarded',
           g.backoff, g.metadata, g.input
      from gone g
      left join rowlock.queue q on q.name = g.queue
     where coalesce(q.retention_days, 7) > 0
  )
  select coalesce(q.retention_days, 7) > 0 into v_kept
    from gone g
    left join rowlock.queue q on q.name = g.queue;
  if not found then
    v_state := rowlock.state_of(p_id);
    perform rowlock.refuse('RL012', format('discard does not apply: job %s is %s', p_id, v_state),
      jsonb_build_object('state', v_state));
  end if;
  if not v_kept then
    delete from rowlock.payload p where p.job_id = p_id;
  end if;
  perform rowlock.note('discard', p_id, null, p_actor, p_reason);
end
$rowlock$;
