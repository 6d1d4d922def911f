-- Do about as many jobs wait in a queue as may? Internal.
--
-- How it is known: the last count, and the ids that were given out since, of whatever queue: no more than those can
-- have been added. While they would fit, or are less than a tenth of p_most, nothing is counted: so a queue just below
-- its bound is not counted at every call, and may come to eleven tenths. Once it was found full that is believed for a
-- hundred times as long as the count took, and at least 100 ms; then it is counted anew. sweep does so beforehand, so
-- that callers whose transactions end with the refusal need not.
create or replace function rowlock.is_full(p_queue text, p_most bigint) returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $rowlock$
declare
  v_last record;
begin
  select l.waiting, l.counted_at, l.took_ms, s.last_value - l.at_id as given_out
    into v_last
    from rowlock.queue_length l
   cross join rowlock.job_id s
   where l.queue = p_queue and l.most = p_most
   order by l.no desc
   limit 1;
  if v_last.waiting < p_most and v_last.given_out < greatest(p_most - v_last.waiting, p_most / 10) then
    return false;
  elsif v_last.waiting >= p_most and rowlock.now() between v_last.counted_at
        and v_last.counted_at + greatest(v_last.took_ms * 100, 100) * interval '1 ms' then
    return true;
  end if;
  return coalesce(rowlock.measure(p_queue, p_most), v_last.waiting, 0) >= p_most;
end
$rowlock$;
