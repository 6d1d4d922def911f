-- Why no worker takes a job that waits: who serves its queue and handles its kind, whether they have a free slot, and
-- what comes first. Internal: a part of why.
--
-- p_is_held: something else keeps the job already; then it is not said that nothing does.
create or replace function rowlock.why_unclaimed(p_id bigint, p_is_held boolean, p_now timestamptz)
returns table (reason text, says text, since timestamptz, until timestamptz, detail jsonb)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $rowlock$
declare
  v_job record;
  v_crew record;
begin
  select w.queue, w.kind, w.losses, w.available_at into v_job from rowlock.waiting w where w.id = p_id;
  select count(*) filter (where not c.draining) as taking,
         count(*) filter (where not c.draining and (c.held + c.stuck >= c.slots or c.alone is not null)) as full,
         coalesce(sum(c.slots) filter (where not c.draining), 0) as slots,
         coalesce(sum(c.held) filter (where not c.draining), 0) as held,
         coalesce(sum(c.stuck) filter (where not c.draining), 0) as stuck,
         array_agg(c.name order by c.name) filter (where not c.draining and c.stuck > 0) as deaf,
         min(c.alone) filter (where not c.draining) as alone,
         sum(c.shared) filter (where not c.draining) as shared,
         coalesce(sum(c.ended), 0)::bigint as ended_per_minute,
         min(c.beat_at) as oldest_beat_at, array_agg(c.name order by c.name) as names,
         jsonb_agg(to_jsonb(c) - 'handles' || jsonb_build_object('alone', c.alone::text) order by c.name) as workers
    into v_crew
    from rowlock.crew(v_job.queue, v_job.kind, p_now) as c where c.handles;
  if v_crew.taking = 0 then
    return query select u.* from rowlock.why_unserved(v_job.queue, v_job.kind, p_now) as u;
    return;
  end if;

  if v_job.losses >= 2 then
    reason := 'suspect';
    says := format('it was lost with its worker %s times, so it is claimed alone: at the head of the first line with '
      'work, or now and then once it waits longer than its queue promises; its worker lets the others end first. Look '
      'at what it did to those workers', v_job.losses);
    detail := jsonb_build_object('losses', v_job.losses);
    return next;
  end if;
  if v_job.available_at > p_now then
    return;
  end if;

  if v_crew.full = v_crew.taking then
    reason := 'workers_full';
    says := format('all %s worker(s) that handle it are busy: %s job(s) of queue %s are claimed for %s slot(s)%s%s%s. '
      'It is taken when one ends; more workers, or a higher concurrency of the queue, take more at once',
      v_crew.taking, v_crew.held, v_job.queue, v_crew.slots,
      case when v_crew.shared is not null
           then format('; of %s that queues share, the others have the rest', v_crew.shared) else '' end,
      case when v_crew.alone is not null
           then format('; job %s runs alone, for it was lost before', v_crew.alone) else '' end,
      case when v_crew.stuck > 0
           then format('; %s slot(s) are held by handlers that ignored their signal: restart worker %s', v_crew.stuck,
             rowlock.say_names(v_crew.deaf)) else '' end);
    detail := jsonb_build_object(
      'workers', v_crew.workers, 'slots', v_crew.slots, 'held', v_crew.held, 'stuck', v_crew.stuck);
    return next;
    return;
  end if;

  return query select b.* from rowlock.why_behind(p_id, v_crew.ended_per_minute, p_now) as b;
  if not found and not p_is_held and v_job.losses < 2 then
    reason := 'due';
    since := v_job.available_at;
    says := format('nothing holds it: it is due since %s and the first of its lines; the next look of a worker takes it'
      '%s', rowlock.say_when(v_job.available_at, p_now),
      case when v_job.available_at < p_now - interval '30 s'
           then format('. It should have by now: see the logs of %s (oldest beat at %s)',
             rowlock.say_names(v_crew.names), rowlock.say_when(v_crew.oldest_beat_at, p_now)) else '' end);
    detail := jsonb_build_object('workers', v_crew.workers);
    return next;
  end if;
end
$rowlock$;
