-- Handlers of a queue that a worker may run at once, as far as it told; null where it told nothing. Internal.
--
-- p_told: what its last beat told of the queue; p_own: what it was started with; p_set: the queue's own setting.
-- Why the setting comes last: a worker of an older release does not follow it, and one that does has told what it made
-- of it. So it counts only where the worker tells of its queues, and not this.
create or replace function rowlock.slots_of(p_told jsonb, p_own jsonb, p_set integer) returns integer
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $rowlock$
  select coalesce(
    rowlock.figure(p_told, 'concurrency'),
    case when jsonb_typeof(p_told) = 'object' then p_set end,
    rowlock.figure(p_own, 'concurrency'))
$rowlock$;
