-- Give dead letters up, as `discard` gives one up: they move to history as cancelled, reason `discarded`,
-- or `discarded: ` and why where that is said.
--
-- p_filter: only jobs that it finds when their row is locked.
-- p_wait: wait for a row that others have locked, instead of passing it by; for one id only.
-- Returns: a row for each id, in order: `discarded`, `not_found`, `wrong_state` with its state, `busy` when it kept
--   moving, `changed` when p_filter does not find it any more. Each that was changed has a row in audit.
-- Transaction: may run in the caller's (READ COMMITTED). Locks: rows in dead_letter (skip locked).
-- Errors: RL001, RL030.
create or replace function rowlock.discard_many(
  p_ids bigint[], p_actor text default null, p_reason text default null, p_filter jsonb default null,
  p_wait boolean default false)
returns table (id bigint, answer text, detail jsonb)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $rowlock$
declare
  v_reason text := 'discarded' || coalesce(': ' || left(p_reason, 1000), '');
  v_now timestamptz := rowlock.now();
  v_rounds integer := case when p_wait then 20 else 10 end;
  v_left bigint[] := rowlock.check_many('discard', p_ids, p_filter, p_wait);
  v_said jsonb := '{}';
  v_fit bigint[];
  v_done bigint[];
  v_large bigint[];
  v_queues jsonb;
begin
  for v_round in 1 .. v_rounds loop
    v_fit := rowlock.lock_dead_letters(v_left, p_wait);
    if v_fit <> '{}' then
      v_fit := rowlock.fits(v_fit, p_filter);
      perform rowlock.ensure_days(v_now);
      with gone as (
        delete from rowlock.dead_letter d where d.id = any (v_fit) returning d.*
      ), kept as (
        insert into rowlock.finished (
          id, finished_at, claimed_at, started_at, available_at, enqueued_at, retried_from, worker_id, timeout,
          attempt, priority, failures, max_attempts, retention_days, state, queue, kind, tenant_id, dedupe_key,
          idempotency_key, cause, actor, reason, backoff, metadata, input)
        select g.id, v_now, g.claimed_at, g.started_at, g.available_at, g.enqueued_at, g.retried_from, g.worker_id,
               g.timeout, g.attempt, g.priority, g.failures, g.max_attempts, coalesce(q.retention_days, 7),
               'cancelled', g.queue, g.kind, g.tenant_id, g.dedupe_key, g.idempotency_key, g.cause,
               left(p_actor, 200), v_reason, g.backoff, g.metadata, g.input
          from gone g
          left join rowlock.queue q on q.name = g.queue
         where coalesce(q.retention_days, 7) > 0
      )
      select coalesce(array_agg(g.id order by g.id), '{}'), array_agg(g.id) filter (where q.retention_days = 0),
             jsonb_object_agg(g.id, g.queue)
        into v_done, v_large, v_queues
        from gone g
        left join rowlock.queue q on q.name = g.queue;
      if v_large is not null then
        delete from rowlock.payload p where p.job_id = any (v_large);
      end if;
      perform rowlock.note_each('discard', v_done, p_actor, p_reason, p_queues => v_queues);
      v_said := v_said || rowlock.said(v_done, 'discarded');
      v_left := rowlock.unsaid(v_left, v_said);
    end if;
    v_said := v_said || rowlock.refusals('discard', v_left, p_filter);
    v_left := rowlock.unsaid(v_left, v_said);
    exit when v_left = '{}';
    perform pg_sleep(0.002 * v_round);
  end loop;
  return query select a.id, a.answer, a.detail from rowlock.answers(p_ids, v_said) as a;
end
$rowlock$;
