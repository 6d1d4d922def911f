-- Put a dead letter back in its queue: the same job, its failures forgotten.
--
-- Transaction: may run in the caller's. Locks: its dedupe key, which it takes again, then the row in dead_letter.
-- Errors: RL010, RL012, RL013 another live job has the key, RL030.
create or replace function rowlock.redrive(p_id bigint, p_actor text default null, p_reason text default null)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $rowlock$
declare
  v_now timestamptz := rowlock.now();
  v_queue text;
  v_key text;
  v_state text;
begin
  perform rowlock.require_read_committed('redrive');
  perform rowlock.commit_durably();
  select d.queue, d.dedupe_key into v_queue, v_key from rowlock.dead_letter d where d.id = p_id;
  if v_key is not null then
    perform rowlock.take_key(v_queue, v_key, p_id);
  end if;
  with gone as (
    delete from rowlock.dead_letter d where d.id = p_id returning d.*
  )
  insert into rowlock.waiting (
    id, available_at, enqueued_at, retried_from, timeout, attempt, priority, max_attempts, queue, kind, tenant_id,
    dedupe_key, idempotency_key, backoff, metadata, input)
  select g.id, v_now, g.enqueued_at, g.retried_from, g.timeout, g.attempt, g.priority, g.max_attempts, g.queue, g.kind,
         g.tenant_id, g.dedupe_key, g.idempotency_key, g.backoff, g.metadata, g.input
    from gone g;
  if not found then
    v_state := rowlock.state_of(p_id);
    perform rowlock.refuse('RL012', format('redrive does not apply: job %s is %s', p_id, v_state),
      jsonb_build_object('state', v_state));
  end if;
  -- Whoever puts it back wants it to run, whatever was asked of it before.
  delete from rowlock.cancel_request c where c.job_id = p_id;
  perform rowlock.note('redrive', p_id, null, p_actor, p_reason);
  perform rowlock.wake(array[v_queue], v_now);
end
$rowlock$;
