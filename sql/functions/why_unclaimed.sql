-- Why no worker takes a job that waits: who serves its queue, who handles its kind, whether they have a free slot, and
-- what comes first. Internal: a part of why.
--
-- p_is_held: something else keeps the job already; then it is not said that nothing does.
-- What comes first: due jobs before it in its own line, in lines of the same priority those that wait longer, and all
-- that are due in lines of higher priority; of the kinds that the same workers handle, and at most 10,000.
create or replace function rowlock.why_unclaimed(p_id bigint, p_is_held boolean, p_now timestamptz)
returns table (reason text, says text, since timestamptz, until timestamptz, detail jsonb)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $rowlock$
declare
  v_most constant integer := 10000;
  v_job rowlock.waiting;
  v_is_due boolean;
  v_crew record;
  v_kinds text[];
  v_names text[];
  v_in_line bigint := 0;
  v_beside bigint := 0;
  v_higher bigint := 0;
  v_ahead bigint;
begin
  select w.* into v_job from rowlock.waiting w where w.id = p_id;
  v_is_due := v_job.available_at <= p_now;

  select count(*) as serving,
         count(*) filter (where c.handles) as handling,
         count(*) filter (where c.handles and not c.drains) as taking,
         count(*) filter (where c.handles and not c.drains and (c.held >= c.slots or c.alone is not null)) as full,
         coalesce(sum(c.slots) filter (where c.handles and not c.drains), 0) as slots,
         coalesce(sum(c.held) filter (where c.handles and not c.drains), 0) as held,
         coalesce(sum(c.ended) filter (where c.handles), 0) as ended_per_minute,
         min(c.beat_at) filter (where c.handles) as oldest_beat_at,
         min(c.alone) filter (where c.handles and not c.drains) as alone,
         coalesce(sum(c.stuck) filter (where c.handles), 0) as stuck,
         coalesce(array_agg(c.name order by c.name) filter (where c.handles), '{}') as names,
         coalesce(jsonb_agg(jsonb_build_object(
           'id', c.id, 'name', c.name, 'slots', c.slots, 'held', c.held, 'draining', c.drains, 'stuck', c.stuck,
           'beat_at', c.beat_at, 'alone', c.alone::text) order by c.name) filter (where c.handles), '[]') as workers
    into v_crew
    from (select w.id, w.name, w.beat_at, v_job.kind = any (w.kinds) as handles,
                 coalesce((w.facts ->> 'draining')::boolean, false) as drains,
                 coalesce(q.concurrency, rowlock.figure(w.queues -> v_job.queue, 'concurrency')) as slots,
                 rowlock.figure(w.facts, 'stuck') as stuck,
                 coalesce(rowlock.figure(w.facts #> array['by_queue', v_job.queue], 'done'), 0)
                   + coalesce(rowlock.figure(w.facts #> array['by_queue', v_job.queue], 'failed'), 0) as ended,
                 (select count(*) from rowlock.running r where r.worker_id = w.id and r.queue = v_job.queue) as held,
                 (select min(r.id) from rowlock.running r where r.worker_id = w.id and r.losses >= 2) as alone
            from rowlock.worker w
            left join rowlock.queue q on q.name = v_job.queue
           where w.expires_at > p_now and w.queues ? v_job.queue) as c;
  select coalesce(array_agg(distinct k.kind), '{}') into v_kinds
    from rowlock.worker w cross join lateral unnest(w.kinds) as k (kind)
   where w.expires_at > p_now and w.queues ? v_job.queue
     and (v_crew.handling = 0 or v_job.kind = any (w.kinds));

  if v_crew.serving = 0 then
    select coalesce(array_agg(distinct k.queue), '{}') into v_names
      from rowlock.worker w
     cross join lateral jsonb_object_keys(
             case when jsonb_typeof(w.queues) = 'object' then w.queues else '{}' end) as k (queue)
     where w.expires_at > p_now;
    reason := 'no_worker';
    says := format('no living worker serves queue %s%s Start a worker with that queue, or enqueue where one is',
      v_job.queue,
      case when v_names = '{}' then '; no worker lives at all.'
           else format('; served are: %s%s', rowlock.say_names(v_names),
             coalesce(nullif(rowlock.did_you_mean(v_job.queue, v_names), ''), '.')) end);
    detail := jsonb_build_object('queue', v_job.queue, 'served', v_names[1:100]);
    return next;
    return;
  elsif v_crew.handling = 0 then
    reason := 'no_handler';
    says := format('queue %s is served by %s worker(s), and none handles kind %s; they handle: %s%s Deploy a worker '
      'with a handler for it', v_job.queue, v_crew.serving, v_job.kind, rowlock.say_names(v_kinds),
      coalesce(nullif(rowlock.did_you_mean(v_job.kind, v_kinds), ''), '.'));
    detail := jsonb_build_object('queue', v_job.queue, 'kind', v_job.kind, 'handled', v_kinds[1:100]);
    return next;
    return;
  elsif v_crew.taking = 0 then
    reason := 'workers_draining';
    says := format('every worker that handles it is draining, and takes nothing more: %s. Start another one',
      rowlock.say_names(v_crew.names));
    detail := jsonb_build_object('workers', v_crew.workers);
    return next;
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
  if not v_is_due then
    return;
  end if;

  if v_crew.full = v_crew.taking then
    reason := 'workers_full';
    says := format('all %s worker(s) that handle it are busy: %s job(s) of queue %s are claimed for %s slot(s)%s%s. It '
      'is taken when one ends; more workers, or a higher concurrency of the queue, take more at once',
      v_crew.taking, v_crew.held, v_job.queue, v_crew.slots,
      case when v_crew.alone is not null
           then format('; job %s runs alone, for it was lost before', v_crew.alone) else '' end,
      case when v_crew.stuck > 0
           then format('; %s slot(s) are held by handlers that ignored their signal', v_crew.stuck) else '' end);
    detail := jsonb_build_object('workers', v_crew.workers, 'slots', v_crew.slots, 'held', v_crew.held);
    return next;
  end if;

  select count(*) into v_in_line
    from (select from rowlock.waiting w
           where w.queue = v_job.queue and w.kind = v_job.kind and w.priority = v_job.priority
             and (w.available_at, w.id) < (v_job.available_at, v_job.id)
           order by w.available_at, w.id
           limit v_most + 1) as n;
  select count(*) filter (where n.priority > v_job.priority), count(*) filter (where n.priority = v_job.priority)
    into v_higher, v_beside
    from (select l.priority
            from rowlock.lines(v_job.queue, 2000) as l
           cross join lateral (
                  select from rowlock.waiting w
                   where w.queue = v_job.queue and w.kind = l.kind and w.priority = l.priority
                     and w.available_at <= case
                           when l.priority > v_job.priority then p_now
                           else v_job.available_at - interval '1 microsecond' end
                   order by w.available_at, w.id
                   limit v_most + 1) as w
           where l.kind = any (v_kinds)
             and (l.priority > v_job.priority or (l.priority = v_job.priority and l.kind <> v_job.kind))
           limit v_most + 1) as n;
  v_ahead := v_in_line + v_beside + v_higher;
  if v_ahead > 0 then
    reason := 'behind';
    since := v_job.available_at;
    says := format('%s due job(s) of queue %s come first: %s in its line, %s of other kinds that wait longer, %s of '
      'higher priority%s', case when v_ahead > v_most then format('more than %s', v_most) else v_ahead::text end,
      v_job.queue, v_in_line, v_beside, v_higher,
      case when v_crew.ended_per_minute > 0 and v_ahead <= v_most
           then format('; at %s a minute, as in the last one, that is %s', v_crew.ended_per_minute,
             rowlock.say_length(v_ahead * interval '1 minute' / v_crew.ended_per_minute))
           when v_crew.ended_per_minute > 0 then format('; the last minute ended %s', v_crew.ended_per_minute)
           else '' end);
    detail := jsonb_build_object('ahead', least(v_ahead, v_most), 'about', v_ahead > v_most, 'in_line', v_in_line,
      'beside', v_beside, 'higher', v_higher, 'ended_per_minute', v_crew.ended_per_minute);
    return next;
  end if;

  if not p_is_held and v_crew.full < v_crew.taking and v_ahead = 0 and v_job.losses < 2 then
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
