-- About how many jobs of each queue are due, scheduled and retryable, by some 300 blocks of the table, whatever its
-- size and whether it was ever analysed. Internal: for what is too many to count.
--
-- Returns: {queue: {"due", "scheduled", "retryable"}}.
create or replace function rowlock.waiting_sample(p_now timestamptz) returns jsonb
language plpgsql stable
set search_path = pg_catalog, pg_temp
set jit = off
as $rowlock$
declare
  v_blocks bigint := pg_relation_size('rowlock.waiting') / current_setting('block_size')::integer;
  v_percent double precision := least(100, 100 * 300 / greatest(v_blocks, 1)::double precision);
begin
  return (
    select jsonb_object_agg(s.queue, jsonb_build_object(
             'due', round(s.due * 100 / v_percent), 'scheduled', round(s.scheduled * 100 / v_percent),
             'retryable', round(s.retryable * 100 / v_percent)))
      from (select w.queue,
                   count(*) filter (where w.available_at <= p_now) as due,
                   count(*) filter (where w.available_at > p_now and w.cause is null) as scheduled,
                   count(w.cause) as retryable
              from rowlock.waiting w tablesample system (v_percent)
             group by w.queue) as s);
end
$rowlock$;
