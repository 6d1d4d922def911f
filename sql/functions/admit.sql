-- How many jobs of a limited queue a claim may take now. It keeps the queue to itself until it commits. Internal: a
-- part of claim, which says what it took by note_starts.
--
-- p_taken: what the claim has taken of this queue already.
-- Returns: `starts`; `room`: how many more may run by max_running, null where there is none; `no`: the number for the
--   jobs that are taken, where they are counted; `at`: the instant of the claim; `next_at`: when to look again, where
--   it is known; `is_awaited`: some worker found the queue full.
-- Locks: the queue's throttle (skip locked).
-- Why so many statements: the count must be younger than the lock, and so must what is set. One that is counted by the
-- statement that locks misses what was committed while it looked for the lock: 17 ran of at most 10. And the clock is
-- read after it: by its own instant, a claim takes no slot that was free only later.
create or replace function rowlock.admit(
  p_queue text, p_wanted integer, p_taken integer, out starts integer, out room integer, out no bigint,
  out at timestamptz, out next_at timestamptz, out is_awaited boolean)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $rowlock$
declare
  v_throttle rowlock.throttle;
  v_queue rowlock.queue;
  v_running bigint;
  v_uncounted bigint := 0;
  v_first bigint;
  v_full_at timestamptz;
begin
  starts := 0;
  select t.* into v_throttle from rowlock.throttle t where t.queue = p_queue for no key update skip locked;
  if not found then
    -- Another claim has it, for some milliseconds.
    next_at := rowlock.now() + (2 + 6 * random()) * interval '1 ms';
    return;
  end if;
  is_awaited := v_throttle.is_awaited;
  select q.* into v_queue from rowlock.queue q where q.name = p_queue;
  starts := greatest(p_wanted, 0);

  if v_queue.max_running is not null and v_throttle.is_settled then
    select count(*), min(r.limit_no) into v_running, v_first
      from rowlock.running r where r.queue = p_queue and r.limit_no >= v_throttle.floor;
  elsif v_queue.max_running is not null then
    if v_throttle.mark is null then
      v_throttle.mark := pg_snapshot_xmax(pg_current_snapshot());
      update rowlock.throttle t set mark = v_throttle.mark where t.queue = p_queue;
    end if;
    if rowlock.older_claims(v_throttle.mark) then
      starts := 0;
      next_at := rowlock.now() + (2 + 6 * random()) * interval '1 ms';
      return;
    end if;
    select count(*), min(r.limit_no), count(*) filter (where r.limit_no is null)
      into v_running, v_first, v_uncounted
      from rowlock.running r where r.queue = p_queue;
  end if;
  if v_queue.max_running is not null then
    room := greatest(v_queue.max_running - v_running - p_taken, 0);
    starts := least(starts, room);
    if starts > 0 then
      no := nextval('rowlock.limit_no');
    end if;
    -- The floor may lag behind: what died above it is waded through, and each write of it is a dead row of its own.
    if v_uncounted = 0 and (not v_throttle.is_settled or coalesce(v_first, no) >= v_throttle.floor + 64) then
      update rowlock.throttle t set is_settled = true, floor = coalesce(v_first, no, t.floor) where t.queue = p_queue;
    end if;
  end if;

  at := rowlock.now();
  if v_queue.rate_starts is not null and starts > 0 then
    -- More than a burst is owed where the clock stepped back or the rate was raised: else that would last for hours.
    v_full_at := rowlock.rate_paid_at(v_queue.rate_starts, v_queue.rate_per, v_queue.rate_burst, at);
    if v_throttle.paid_at > v_full_at then
      v_throttle.paid_at := v_full_at;
      update rowlock.throttle t set paid_at = v_full_at where t.queue = p_queue;
    end if;
    next_at := rowlock.next_start_at(
      v_queue.rate_starts, v_queue.rate_per, v_queue.rate_burst, v_throttle.paid_at, at);
    starts := least(starts, floor(v_queue.rate_burst - rowlock.rate_debt(
      v_queue.rate_starts, v_queue.rate_per, v_queue.rate_burst, v_throttle.paid_at, at))::integer);
  end if;
end
$rowlock$;
