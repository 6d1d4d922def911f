-- Count what waits in a queue, up to p_most, and note it for those who come after. Internal.
--
-- Returns: how many; p_most means so many or more. Null where p_most is large and somebody else counts just now.
-- Transaction: jobs that were not committed when it looked are not counted. The id is read first, so that what comes
--   meanwhile is counted twice rather than not at all.
-- Cost: p_most entries of the dispatch index. Locks: none that are held.
create or replace function rowlock.measure(p_queue text, p_most bigint) returns bigint
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $rowlock$
declare
  v_at_id bigint := (select s.last_value - (not s.is_called)::integer from rowlock.job_id s);
  v_now timestamptz := rowlock.now();
  v_began timestamptz := clock_timestamp();
  v_waiting bigint;
begin
  begin
    -- A long count is done by one at a time. The lock goes with this block, not with the caller's transaction.
    if p_most <= 10000 or pg_try_advisory_xact_lock(rowlock.lock_key('length ' || p_queue)) then
      select count(*) into v_waiting
        from (select from rowlock.waiting w where w.queue = p_queue limit p_most) as n;
    end if;
    if p_most > 10000 then
      raise exception using errcode = 'RL011';
    end if;
  exception when sqlstate 'RL011' then
    null;
  end;
  if v_waiting is null then
    return null;
  end if;
  -- Under a stricter isolation a row that somebody else removed would be an error.
  if current_setting('transaction_isolation') in ('read committed', 'read uncommitted') then
    delete from rowlock.queue_length l
     where l.ctid = any (array(
             select o.ctid from rowlock.queue_length o
              where o.queue = p_queue
                for update skip locked));
  end if;
  insert into rowlock.queue_length (counted_at, took_ms, waiting, most, at_id, queue)
  values (v_now, extract(epoch from clock_timestamp() - v_began) * 1000, v_waiting, p_most, v_at_id, p_queue);
  return v_waiting;
end
$rowlock$;
