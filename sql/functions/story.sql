-- What happened to a job, in order: enqueued, each attempt's claim, start and end, what people did and why, its end,
-- and the jobs that it was retried as. Of an attempt that ended its job well the job's own row tells; of the others, a
-- row each in `attempt`.
--
-- Returns: `event`: enqueued, claimed, started; how an attempt ended: failed, timed_out, lost, snoozed, handed_back,
--   cancelled; a verb, for what somebody did: cancel, run_now, prioritize, redrive, discard, retry, purge; where the
--   job is by now: done, failed, cancelled, dead_letter, waiting again as queued or retryable with the instant it is
--   due. `worker`: its name while it is known, else its id. Of more than 1,000 attempts the last ones. A job that was
--   purged has only what was done to it.
-- Errors: RL010.
create or replace function rowlock.story(p_id bigint)
returns table (
  at timestamptz, event text, attempt integer, worker text, cause text, actor text, reason text, detail jsonb)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $rowlock$
begin
  return query
    with job as materialized (
      select j.* from rowlock.job j where j.id = p_id
    ), attempts as materialized (
      -- A job that is snoozed each second has 600,000 of them in a week.
      select a.* from rowlock.attempt a where a.job_id = p_id order by a.attempt desc, a.ended_at desc limit 1000
    ), spans as (
      -- Attempts by their claims: those on record, and the one that runs or ended the job.
      select a.attempt, a.claimed_at, a.started_at, a.worker_id from attempts a
      union all
      select j.attempt, j.claimed_at, j.started_at, j.worker_id
        from job j
       where j.claimed_at is not null and not exists (select from attempts a where a.attempt = j.attempt)
    ), changes as (
      select a.* from rowlock.audit a where a.job_id = p_id
    ), events (sort_at, rank, at, event, attempt, worker_id, cause, actor, reason, detail) as (
      select j.enqueued_at, 0, j.enqueued_at, 'enqueued', null::integer, null::uuid, null, null, null,
             jsonb_strip_nulls(jsonb_build_object(
               'queue', j.queue, 'kind', j.kind, 'priority', j.priority, 'retried_from', j.retried_from::text,
               'dedupe_key', j.dedupe_key, 'tenant_id', j.tenant_id, 'expires_at', j.expires_at))
        from job j
      union all
      select s.claimed_at, 1, s.claimed_at, 'claimed', s.attempt, s.worker_id, null, null, null, null from spans s
      union all
      select s.started_at, 2, s.started_at, 'started', s.attempt, s.worker_id, null, null, null, null
        from spans s where s.started_at is not null
      union all
      select a.ended_at, 3, a.ended_at, a.outcome, a.attempt, a.worker_id, a.cause, null, null,
             nullif(jsonb_strip_nulls(jsonb_build_object('error', a.error)), '{}')
        from attempts a
      union all
      -- Whoever cancelled wrote so a moment after the end.
      select case when c.verb in ('cancel', 'discard') then least(c.at, j.finished_at) else c.at end, 4, c.at, c.verb,
             null, null, null, c.actor, c.reason, c.detail
        from changes c
        left join job j on true
      union all
      select j.finished_at, 5, j.finished_at, j.state, case when j.claimed_at is not null then j.attempt end,
             j.worker_id, j.cause, j.actor, j.reason,
             nullif(jsonb_strip_nulls(jsonb_build_object('result', j.result, 'failures', nullif(j.failures, 0))), '{}')
        from job j
       where j.finished_at is not null
      union all
      -- Last, though what it tells may lie ahead.
      select 'infinity', 6, j.available_at, j.state, null, null, j.cause, null, null,
             nullif(jsonb_strip_nulls(jsonb_build_object('failures', nullif(j.failures, 0))), '{}')
        from job j
       where j.state in ('queued', 'retryable')
    )
    select e.at, e.event, e.attempt, coalesce(w.name, e.worker_id::text), e.cause, e.actor, e.reason, e.detail
      from events e
      left join rowlock.worker w on w.id = e.worker_id
     order by e.sort_at, e.attempt nulls first, e.rank, e.at;
  if not found then
    perform rowlock.refuse('RL010', format('no job has the id %s', p_id));
  end if;
end
$rowlock$;
