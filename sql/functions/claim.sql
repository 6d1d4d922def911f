-- Take due jobs under the worker's lease, for several queues at once.
--
-- p_wants: [{"queue": q, "limit": n, "kinds": [k …], "from": {kind: [{"priority", "at", "id"} …]}, "alone": bool}];
--   `from` is where the worker's frontier stands, line by line; a line without one is looked at from its beginning;
--   `alone` false: suspects are passed by. "turn", "upto": queues that share slots are visited in this order, each for
--   no more than the whole claim then has room for; without them in any order, each by its own limit. "alike" true in
--   the first: the caller reads jobs that are answered together; a release that does not say so does not.
-- p_sleeping_until: set by a worker whose flags are up: a queue that yields jobs loses its flag, the others keep it
--   until then.
-- Returns: {"jobs": [[…] …], "alike": [{…} …], "found": {queue: n}, "next_due": ms | null, "full": boolean, "xmin": …,
--   "xmax": …, "looked_ms": …}. `jobs` are those with something that few have (a tenant, keys, losses …), field by
--   field; the last is how long one may still wait for its start, in ms, or null. All others are in `alike`, by what
--   they share.
--   `full`: each queue that was asked for runs as many as it may, so that another look is of no use before one ends.
--   A short claim is no proof of emptiness; where more is known to be due, next_due is not after now. Jobs come in no
--   order.
-- Order: priority first; among kinds of the same priority the one whose head has waited longest; inside a line oldest
--   first. A suspect, a job that was lost twice, is claimed alone.
-- Limits: what a queue may run and start is asked by admit, under the lock of its throttle; a queue without limits is
--   not asked for.
-- Locks: the worker's row (key share), throttles of limited queues and the rows taken (skip locked). Waits for nobody.
-- Errors: RL020 lease over, RL030 isolation.
-- Why two statements for lock and delete: in one, a row that is updated between the snapshot and the lock is locked
-- in its new version, which the delete cannot see. Why `= any (array)`: a join may run the locking query again. Why a
-- line is locked from its head on: what died in front of it is waded through once a claim, not twice.
create or replace function rowlock.claim(
  p_worker_id uuid, p_wants jsonb, p_sleeping_until timestamptz default null) returns json
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_indexscan = on
set enable_tidscan = on
set enable_nestloop = on
set jit = off
set plan_cache_mode = force_generic_plan
as $rowlock$
declare
  v_now timestamptz := rowlock.now();
  v_began timestamptz := clock_timestamp();
  v_snapshot pg_snapshot := pg_current_snapshot();
  v_claim_id uuid := gen_random_uuid();
  v_together constant boolean := coalesce(p_wants #> '{0,alike}' = 'true', false);
  v_queue text;
  v_want record;
  v_line record;
  v_left integer;
  v_locked tid[];
  v_expired boolean;
  v_tids tid[] := '{}';
  v_found jsonb := '{}';
  v_before integer;
  v_pass record;
  v_passes jsonb := '{}';
  v_passed boolean := false;
  v_is_due boolean;
  v_due_at timestamptz;
  v_is_full boolean := true;
  v_next_due timestamptz;
  v_alone boolean := false;
  v_suspects boolean;
  v_lines integer := 0;
  v_looked_ms double precision;
  v_jobs json;
  v_alike json;
begin
  perform rowlock.require_read_committed('claim');
  perform rowlock.commit_durably();
  perform 1 from rowlock.worker w where w.id = p_worker_id and w.expires_at > v_now for key share;
  if not found then
    perform rowlock.refuse('RL020', 'the lease of this worker is over: it claims nothing');
  end if;

  for v_want in
    select w.queue, least(coalesce(w."limit", 0), 1000) as "limit", w.kinds, w."from", w.alone, w.upto,
           num_nonnulls(q.max_running, q.rate_starts) > 0 as is_limited
      from jsonb_to_recordset(p_wants) as w (
             queue text, "limit" integer, kinds text[], "from" jsonb, alone boolean, turn integer, upto integer)
      left join rowlock.queue q on q.name = w.queue
     where q.paused_at is null
     -- No queue is always behind the same others:
     -- a job that must be claimed alone gets its turn at a full worker too.
     order by w.turn, random()
  loop
    v_before := cardinality(v_tids);
    v_is_full := v_is_full and v_want.is_limited;
    -- One without room of its own is asked for even so: there may be room for others, who are to be told.
    continue when v_want.upto <= v_before and not v_want.is_limited;
    v_left := least(v_want."limit", v_want.upto - v_before);
    if v_want.is_limited then
      v_pass := rowlock.admit(v_want.queue, v_left, coalesce((v_found ->> v_want.queue)::integer, 0));
      v_left := v_pass.starts;
      v_is_due := false;
      if v_left > 0 then
        v_passes := v_passes || jsonb_build_object(v_want.queue, to_jsonb(v_pass));
        v_passed := true;
      end if;
    end if;
    v_suspects := v_want.alone is not false and exists (
      select from rowlock.waiting w where w.queue = v_want.queue and w.losses >= 2);
    -- One claim in four begins with a suspect that waits longer than its queue promises, wherever it stands.
    if v_suspects and v_tids = '{}' and v_left > 0 and random() < 0.25 then
      v_tids := array(
        select w.ctid
          from rowlock.waiting w
         where w.queue = v_want.queue and w.losses >= 2 and w.kind = any (v_want.kinds)
           and w.available_at <= v_now - coalesce(
                 (select q.target_wait from rowlock.queue q where q.name = v_want.queue), interval '1 minute')
           and (w.expires_at is null or w.expires_at > v_now)
         order by w.available_at, w.id
         limit 1
           for update skip locked);
      v_alone := v_tids <> '{}';
    end if;
    -- One head per line. A head that is not due says when its line will be. It hops from line to line: what costs is
    -- lines, not kinds times priorities. Where the frontier of a line is known its beginning is not touched: it may lie
    -- behind dead rows.
    for v_line in
      with recursive line as (
        select k.kind, 11 as priority, null::timestamptz as available_at, null::bigint as id
          from unnest(v_want.kinds) as k (kind)
        union all
        select l.kind, h.priority::integer, h.available_at, h.id
          from line l
          left join lateral (
               select f.priority, coalesce(f.at, '-infinity') as at, coalesce(f.id, 0) as id
                 from jsonb_to_recordset(v_want."from" -> l.kind) as f (priority integer, at timestamptz, id bigint)
                where f.priority < l.priority
                order by f.priority desc
                limit 1) as f on true
         cross join lateral (
               select e.priority, e.available_at, e.id
                 from ((select w.priority, w.available_at, w.id
                          from rowlock.waiting w
                         where w.queue = v_want.queue and w.kind = l.kind
                           and w.priority < l.priority and w.priority > coalesce(f.priority, -11)
                         order by w.priority desc, w.available_at, w.id
                         limit 1)
                       union all
                       (select w.priority, w.available_at, w.id
                          from rowlock.waiting w
                         where w.queue = v_want.queue and w.kind = l.kind and w.priority = f.priority
                           and (w.available_at, w.id) >= (f.at, f.id)
                         order by w.available_at, w.id
                         limit 1)
                       union all
                       select f.priority, null, null where f.priority is not null) as e
                order by e.priority desc, e.available_at
                limit 1) as h
      )
      select l.kind, l.priority, l.available_at, l.available_at as from_at, l.id as from_id
        from line l
       where l.available_at is not null
       order by l.priority desc, l.available_at
    loop
      if v_line.available_at > v_now then
        v_next_due := least(v_next_due, v_line.available_at);
        continue;
      end if;
      v_is_due := true;
      -- A suspect at the head of the first line with work is claimed alone. Elsewhere it is passed by: what stands
      -- behind it does not wait for it.
      if v_suspects and v_tids = '{}' and v_left > 0 then
        v_tids := array(
          select h.ctid
            from (select w.ctid, w.losses, w.expires_at
                    from rowlock.waiting w
                   where w.queue = v_want.queue and w.kind = v_line.kind and w.priority = v_line.priority
                     and w.available_at <= v_now
                     and (w.available_at, w.id) >= (v_line.from_at, v_line.from_id)
                   order by w.available_at, w.id
                   limit 1
                     for update skip locked) as h
           where h.losses >= 2 and (h.expires_at is null or h.expires_at > v_now));
        v_alone := v_tids <> '{}';
      end if;
      -- More than one round only where jobs expired: others may stand behind them.
      loop
        exit when v_left <= 0 or v_alone;
        if v_lines >= 400 then
          v_next_due := v_now;
          exit;
        end if;
        v_lines := v_lines + 1;

        select array_agg(s.ctid), bool_or(s.expires_at <= v_now)
          into v_locked, v_expired
          from (select w.ctid, w.expires_at
                  from rowlock.waiting w
                 where w.queue = v_want.queue and w.kind = v_line.kind and w.priority = v_line.priority
                   and w.available_at <= v_now
                   and (w.available_at, w.id) >= (v_line.from_at, v_line.from_id)
                   and w.losses < 2
                 order by w.available_at, w.id
                 limit v_left
                   for update skip locked) as s;
        exit when v_locked is null;

        if v_expired then
          -- The next round goes on behind these: those that are taken still stand in their line.
          select w.available_at, w.id + 1
            into v_line.from_at, v_line.from_id
            from rowlock.waiting w
           where w.ctid = any (v_locked)
           order by w.available_at desc, w.id desc
           limit 1;
          perform rowlock.end_waiting(
            array(select w.ctid from rowlock.waiting w where w.ctid = any (v_locked) and w.expires_at <= v_now),
            null, 'expired', v_now);
          select array_agg(w.ctid order by w.available_at, w.id)
            into v_locked
            from rowlock.waiting w where w.ctid = any (v_locked);
          continue when v_locked is null;
        end if;

        v_tids := v_tids || v_locked;
        v_left := v_left - cardinality(v_locked);
        v_found := v_found || jsonb_build_object(
          v_want.queue, coalesce((v_found ->> v_want.queue)::integer, 0) + cardinality(v_locked));
        exit when v_expired is not true;
      end loop;
    end loop;
    if v_want.is_limited then
      v_due_at := coalesce(
        rowlock.note_starts(
          v_want.queue, cardinality(v_tids) - v_before, v_pass.room, v_pass.is_awaited, v_is_due, v_pass.at),
        v_pass.next_at);
      if v_is_due then
        v_next_due := least(v_next_due, v_due_at);
      end if;
      v_is_full := v_is_full and coalesce(v_pass.room = cardinality(v_tids) - v_before, false);
    end if;
    if v_alone then
      v_found := jsonb_build_object(v_want.queue, 1);
      exit;
    end if;
  end loop;

  v_looked_ms := extract(epoch from clock_timestamp() - v_began) * 1000;
  if v_tids <> '{}' then
    with gone as (
      delete from rowlock.waiting w where w.ctid = any (v_tids)
      returning w.*, least(w.attempt, 2147483646) + 1 as attempt_now,
                v_together and w.losses = 0 and w.input is not null and num_nonnulls(
                  w.tenant_id, w.dedupe_key, w.idempotency_key, w.metadata, w.retried_from, w.expires_at) = 0
                  as is_bare
    ), taken as (
      insert into rowlock.running (
        id, claimed_at, available_at, enqueued_at, expires_at, retried_from, claim_id, worker_id, timeout,
        attempt, priority, failures, losses, max_attempts, queue, kind, tenant_id, dedupe_key, idempotency_key,
        backoff, metadata, input, limit_no)
      select g.id,
             case when v_passed then coalesce((v_passes -> g.queue ->> 'at')::timestamptz, v_now) else v_now end,
             g.available_at, g.enqueued_at, g.expires_at, g.retried_from, v_claim_id,
             p_worker_id, g.timeout, g.attempt_now, g.priority, g.failures, g.losses, g.max_attempts,
             g.queue, g.kind, g.tenant_id, g.dedupe_key, g.idempotency_key, g.backoff, g.metadata, g.input,
             case when v_passed then (v_passes -> g.queue ->> 'no')::bigint end
        from gone g
    )
    select (select json_agg(json_build_array(
                     g.id::text, g.queue, g.kind, g.priority, g.attempt_now, g.failures, g.input,
                     g.input is null, rowlock.ms(g.available_at), rowlock.ms(g.enqueued_at),
                     rowlock.length_ms(g.timeout), g.max_attempts, g.tenant_id, g.dedupe_key, g.idempotency_key,
                     g.metadata, g.retried_from::text, g.losses,
                     case when isfinite(g.expires_at) then rowlock.length_ms(g.expires_at - v_now) end))
              from gone g
             where not g.is_bare),
           -- Arrays as text cost a third of what building each row as JSON does.
           (select json_agg(a)
              from (select g.queue, g.kind, g.priority, g.attempt_now as attempt, g.failures,
                           rowlock.length_ms(g.timeout) as timeout, g.max_attempts,
                           array_agg(g.id)::text as ids,
                           array_agg(rowlock.ms(g.available_at))::text as available_at,
                           array_agg(rowlock.ms(g.enqueued_at))::text as enqueued_at,
                           json_agg(g.input) as inputs
                      from gone g
                     where g.is_bare
                     group by g.queue, g.kind, g.priority, g.attempt_now, g.failures, g.timeout, g.max_attempts) as a)
      into v_jobs, v_alike;
  end if;

  if p_sleeping_until is not null then
    delete from rowlock.sleeper s where s.worker_id = p_worker_id and v_found ? s.queue;
    update rowlock.sleeper s set until = p_sleeping_until
     where s.worker_id = p_worker_id and s.until < p_sleeping_until
       and s.queue in (select w.queue from jsonb_to_recordset(p_wants) as w (queue text));
  end if;

  return json_build_object(
    'jobs', coalesce(v_jobs, '[]'), 'alike', coalesce(v_alike, '[]'), 'claim_id', v_claim_id, 'alone', v_alone,
    'found', v_found,
    'now', rowlock.ms(v_now), 'next_due', rowlock.ms(v_next_due), 'full', v_is_full,
    'xmin', pg_snapshot_xmin(v_snapshot)::text, 'xmax', pg_snapshot_xmax(v_snapshot)::text,
    'looked_ms', v_looked_ms);
end
$rowlock$;
