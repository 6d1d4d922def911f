-- The states that a bulk change is of where its filter names none: those in which its verb changes a job. A job that is
-- due is left as it is by run_now, so of queued ones it takes those that are scheduled. Internal.
create or replace function rowlock.bulk_states(p_verb text) returns text[]
language sql immutable
set search_path = pg_catalog, pg_temp
as $rowlock$
  select case when p_verb = 'run_now' then array['scheduled', 'retryable'] else rowlock.verb_states(p_verb) end
$rowlock$;
