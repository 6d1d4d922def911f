-- Which limits of its queue keep a due job waiting: of running jobs, with those that run; of starts in a time, with the
-- instant of the next one; or somebody who has them locked, as whoever changes them until that commits. Internal: a
-- part of why.
create or replace function rowlock.why_limited(p_id bigint, p_now timestamptz)
returns table (reason text, says text, since timestamptz, until timestamptz, detail jsonb)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $rowlock$
declare
  v_queue record;
  v_running bigint;
  v_holders jsonb;
  v_per text;
  -- Written out, it would look like a comment.
  v_flag constant text := repeat('-', 2);
begin
  select q.name, q.max_running, q.rate_starts, q.rate_per, q.rate_burst, t.xmax as locked_by, t.tableoid as relation,
         rowlock.next_start_at(q.rate_starts, q.rate_per, q.rate_burst, t.paid_at, p_now) as next_at
    into v_queue
    from rowlock.waiting w
    join rowlock.queue q on q.name = w.queue and num_nonnulls(q.max_running, q.rate_starts) > 0
    left join rowlock.throttle t on t.queue = q.name
   where w.id = p_id and w.available_at <= p_now;
  if not found then
    return;
  end if;

  if v_queue.max_running is not null then
    select count(*) into v_running from rowlock.running r where r.queue = v_queue.name;
  end if;
  if v_running >= v_queue.max_running then
    select jsonb_agg(to_jsonb(r) order by r.claimed_at, r.id) into v_holders
      from (select r.id::text, r.claimed_at, r.started_at, r.worker_id, coalesce(w.name, r.worker_id::text) as worker
              from rowlock.running r
              left join rowlock.worker w on w.id = r.worker_id
             where r.queue = v_queue.name
             order by r.claimed_at, r.id
             limit 100) as r;
    reason := 'running_limit';
    says := format('queue %s runs %s job(s), of at most %s over all workers: %s. It is taken when one of them ends; '
      'rowlock queue %s %smax-running %s lets more run', v_queue.name, v_running, v_queue.max_running,
      rowlock.say_names(array(
        select format('job %s on %s since %s', h ->> 'id', h ->> 'worker',
                 rowlock.say_when((h ->> 'claimed_at')::timestamptz, p_now))
          from jsonb_array_elements(v_holders) as h)),
      rowlock.say_word(v_queue.name), v_flag, least(2 * v_running, 100000));
    detail := jsonb_build_object('queue', v_queue.name, 'max_running', v_queue.max_running, 'running', v_running,
      'holders', v_holders);
    return next;
  end if;

  if v_queue.next_at is not null then
    reason := 'rate_limit';
    v_per := replace(rowlock.say_length(v_queue.rate_per), ' ', '');
    if v_per::interval <> v_queue.rate_per then
      v_per := rowlock.length_ms(v_queue.rate_per) || 'ms';
    end if;
    until := v_queue.next_at;
    says := format('queue %s starts %s job(s) in %s, at most %s at once, over all workers: the next may start %s. '
      'rowlock queue %s %srate %s/%s lets more start', v_queue.name, v_queue.rate_starts,
      rowlock.say_length(v_queue.rate_per), v_queue.rate_burst, rowlock.say_due(v_queue.next_at, p_now),
      rowlock.say_word(v_queue.name), v_flag, least(2 * v_queue.rate_starts, 100000), v_per);
    detail := jsonb_build_object('queue', v_queue.name, 'starts', v_queue.rate_starts,
      'per_ms', rowlock.length_ms(v_queue.rate_per), 'burst', v_queue.rate_burst);
    return next;
  end if;

  -- A claim has them for some milliseconds.
  return query
    select 'limits_locked',
           replace(rowlock.say_holder(to_jsonb(h), h.since, p_now), 'its row locked',
             'the limits of its queue locked, so that none of it starts'),
           h.since, null::timestamptz, jsonb_strip_nulls(to_jsonb(h))
      from rowlock.row_holders(v_queue.locked_by, v_queue.relation) as h
     where h.application_name is distinct from 'rowlock worker' or h.since < p_now - interval '10 s';
end
$rowlock$;
