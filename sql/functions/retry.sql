-- Run an ended job again, by hand: a new job with the same input and settings, which names the old one as
-- `retried_from`. An idempotency key that was given for the old job goes with it; one that was made is made anew.
--
-- Returns: the new job's id.
-- Transaction: may run in the caller's. Locks: its dedupe key, which it takes.
-- Errors: RL010, RL012 it has not ended, RL013 another live job has the key, RL030.
create or replace function rowlock.retry(p_id bigint, p_actor text default null, p_reason text default null)
returns bigint
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $rowlock$
declare
  v_now timestamptz := rowlock.now();
  v_id bigint := nextval('rowlock.job_id');
  v_old rowlock.finished;
  v_state text;
begin
  perform rowlock.require_read_committed('retry');
  perform rowlock.commit_durably();
  select f.* into v_old from rowlock.finished f where f.id = p_id limit 1;
  if not found then
    v_state := rowlock.state_of(p_id);
    perform rowlock.refuse('RL012', format('retry does not apply: job %s is %s', p_id, v_state),
      jsonb_build_object('state', v_state));
  end if;
  if v_old.dedupe_key is not null then
    perform rowlock.take_key(v_old.queue, v_old.dedupe_key, v_id);
  end if;
  if v_old.input is null then
    insert into rowlock.payload (job_id, body) select v_id, p.body from rowlock.payload p where p.job_id = p_id;
  end if;
  insert into rowlock.waiting (
    id, available_at, enqueued_at, retried_from, timeout, priority, max_attempts, queue, kind, tenant_id, dedupe_key,
    idempotency_key, backoff, metadata, input)
  values (
    v_id, v_now, v_now, p_id, v_old.timeout, v_old.priority, v_old.max_attempts, v_old.queue, v_old.kind,
    v_old.tenant_id, v_old.dedupe_key, v_old.idempotency_key, v_old.backoff, v_old.metadata, v_old.input);
  perform rowlock.note('retry', p_id, null, p_actor, p_reason, jsonb_build_object('new_job_id', v_id::text));
  perform rowlock.wake(array[v_old.queue], v_now);
  return v_id;
end
$rowlock$;
