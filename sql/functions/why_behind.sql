-- Which jobs come before one that is due, if any: due jobs before it in its own line, in lines of the same priority
-- those that wait longer, and all that are due in lines of higher priority; of the kinds that the same workers handle,
-- and at most 10,000. Jobs that are to run alone are not among them: who stands behind one does not wait for it.
-- Internal: a part of why.
create or replace function rowlock.why_behind(p_id bigint, p_ended_per_minute bigint, p_now timestamptz)
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
  v_kinds text[];
  v_in_line bigint;
  v_beside bigint;
  v_higher bigint;
  v_ahead bigint;
begin
  select w.* into v_job from rowlock.waiting w where w.id = p_id;
  select coalesce(array_agg(distinct k.kind), '{}') into v_kinds
    from rowlock.worker w cross join lateral unnest(w.kinds) as k (kind)
   where w.expires_at > p_now and w.queues ? v_job.queue and v_job.kind = any (w.kinds);
  select count(*) into v_in_line
    from (select from rowlock.waiting w
           where w.queue = v_job.queue and w.kind = v_job.kind and w.priority = v_job.priority and w.losses < 2
             and (w.available_at, w.id) < (v_job.available_at, v_job.id)
           order by w.available_at, w.id
           limit v_most + 1) as n;
  select count(*) filter (where n.priority > v_job.priority), count(*) filter (where n.priority = v_job.priority)
    into v_higher, v_beside
    from (select l.priority
            from rowlock.lines(v_job.queue, 2000) as l
           cross join lateral (
                  select from rowlock.waiting w
                   where w.queue = v_job.queue and w.kind = l.kind and w.priority = l.priority and w.losses < 2
                     and w.available_at <= case
                           when l.priority > v_job.priority then p_now
                           else v_job.available_at - interval '1 microsecond' end
                   order by w.available_at, w.id
                   limit v_most + 1) as w
           where l.kind = any (v_kinds)
             and (l.priority > v_job.priority or (l.priority = v_job.priority and l.kind <> v_job.kind))
           limit v_most + 1) as n;
  v_ahead := v_in_line + v_beside + v_higher;
  if v_ahead = 0 then
    return;
  end if;
  reason := 'behind';
  since := v_job.available_at;
  says := format('%s due job(s) of queue %s come first: %s in its line, %s of other kinds that wait longer, %s of '
    'higher priority%s', case when v_ahead > v_most then format('more than %s', v_most) else v_ahead::text end,
    v_job.queue, v_in_line, v_beside, v_higher,
    case when p_ended_per_minute > 0 and v_ahead <= v_most
         then format('; at %s a minute, as in the last one, that is %s', p_ended_per_minute,
           rowlock.say_length(v_ahead * interval '1 minute' / p_ended_per_minute))
         when p_ended_per_minute > 0 then format('; the last minute ended %s', p_ended_per_minute)
         else '' end);
  detail := jsonb_build_object('ahead', least(v_ahead, v_most), 'about', v_ahead > v_most, 'in_line', v_in_line,
    'beside', v_beside, 'higher', v_higher, 'ended_per_minute', p_ended_per_minute);
  return next;
end
$rowlock$;
