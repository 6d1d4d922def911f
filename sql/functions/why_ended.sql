-- How a job ended, or why it is a dead letter, and what can be done about it. Internal: a part of why.
create or replace function rowlock.why_ended(p_id bigint, p_now timestamptz)
returns table (reason text, says text, since timestamptz, until timestamptz, detail jsonb)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $rowlock$
declare
  v_job record;
  v_again text;
  v_holder bigint;
  v_error jsonb;
  v_cause text;
begin
  select j.state, j.queue, j.attempt, j.failures, j.max_attempts, j.started_at, j.finished_at, j.cause, j.error,
         j.actor, j.reason as why, j.dedupe_key
    into v_job
    from rowlock.job j where j.id = p_id;
  v_error := coalesce(v_job.error,
    (select a.error from rowlock.attempt a where a.job_id = p_id order by a.attempt desc, a.ended_at desc limit 1));
  select a.detail ->> 'new_job_id' into v_again
    from rowlock.audit a where a.job_id = p_id and a.verb = 'retry' order by a.at desc limit 1;
  select d.job_id into v_holder
    from rowlock.dedupe d
   where d.queue = v_job.queue and d.key = v_job.dedupe_key and d.job_id <> p_id;

  v_cause := coalesce(' (' || nullif(v_job.cause, '') || ')', '');

  reason := v_job.state;
  since := v_job.finished_at;
  says := case v_job.state
      when 'done' then format('it is done since %s%s', rowlock.say_when(v_job.finished_at, p_now),
        format(case when v_job.started_at is null then ', by attempt %2$s' else ', after %1$s of attempt %2$s' end,
          rowlock.say_length(v_job.finished_at - v_job.started_at), v_job.attempt))
      when 'failed' then format('it failed for good at %s%s%s: its handler said that no other attempt would help',
        rowlock.say_when(v_job.finished_at, p_now), v_cause, rowlock.say_error(v_error))
      when 'cancelled' then format('it was cancelled at %s%s', rowlock.say_when(v_job.finished_at, p_now),
        case when v_job.actor is null and v_job.why = 'expired' then ', for it expired before it started'
             else rowlock.say_by(v_job.actor, v_job.why) end)
      else format('it is a dead letter since %s: attempt %s failed%s%s, and that was failure %s of %s. '
        'rowlock redrive %s puts it back, its failures forgotten; rowlock discard %s gives it up',
        rowlock.say_when(v_job.finished_at, p_now), v_job.attempt, v_cause, rowlock.say_error(v_error),
        v_job.failures, v_job.max_attempts, p_id, p_id)
    end
    || case
         when v_again is not null then format('. It was run again as job %s', v_again)
         when v_job.state in ('failed', 'cancelled') then format('. rowlock retry %s runs it again, as a new job', p_id)
         else ''
       end
    || case
         when v_holder is not null and v_job.state <> 'done'
           then format('. Job %s has its dedupe key by now: rowlock %s is refused until that one ends', v_holder,
             case v_job.state when 'dead_letter' then 'redrive' else 'retry' end)
         else ''
       end;
  detail := jsonb_strip_nulls(jsonb_build_object(
    'cause', v_job.cause, 'error', case when v_job.state in ('failed', 'dead_letter') then v_error end,
    'actor', v_job.actor, 'reason', v_job.why, 'attempt', v_job.attempt, 'failures', v_job.failures,
    'max_attempts', v_job.max_attempts, 'retried_as', v_again, 'holder', v_holder::text));
  return next;
end
$rowlock$;
