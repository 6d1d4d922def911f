-- Put on record what a claim took of a limited queue, under the lock that admit took. Internal: a part of claim.
--
-- p_room: what admit answered; p_is_due: some of it is due.
-- Returns: when the rate allows the next start, where that is later; where the queue is full, in a second.
-- Who found the queue full sleeps, for whoever ends a job looks at once. It is told where such a look takes less than
-- there is room for: what waits is not of a kind that this worker handles. The second is for those that end a job and
-- do not look: they drain, or died.
create or replace function rowlock.note_starts(
  p_queue text, p_taken integer, p_room integer, p_is_awaited boolean, p_is_due boolean, p_now timestamptz)
returns timestamptz
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $rowlock$
declare
  v_next_at timestamptz;
begin
  if p_taken > 0 then
    update rowlock.throttle t
       set paid_at = rowlock.rate_paid_at(q.rate_starts, q.rate_per, p_taken + rowlock.rate_debt(
             q.rate_starts, q.rate_per, q.rate_burst, t.paid_at, p_now), p_now)
      from rowlock.queue q
     where t.queue = p_queue and q.name = p_queue and q.rate_starts is not null
    returning rowlock.next_start_at(q.rate_starts, q.rate_per, q.rate_burst, t.paid_at, p_now) into v_next_at;
  end if;
  if p_room = p_taken and p_is_due then
    v_next_at := p_now + interval '1 s';
    if p_room = 0 and not p_is_awaited then
      update rowlock.throttle t set is_awaited = true where t.queue = p_queue;
    end if;
  elsif p_room > p_taken and p_is_awaited then
    update rowlock.throttle t set is_awaited = false where t.queue = p_queue;
    perform rowlock.wake(array[p_queue], '-infinity');
  end if;
  return v_next_at;
end
$rowlock$;
