-- Does this answer of a verb for many jobs say that a job was changed? Internal.
create or replace function rowlock.is_change(p_answer text) returns boolean
language sql immutable
set search_path = pg_catalog, pg_temp
as $rowlock$
  select p_answer in (
    'cancelled', 'requested', 'due', 'prioritized', 'redriven', 'discarded', 'retried', 'purged')
$rowlock$;
