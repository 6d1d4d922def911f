-- The states in which a verb changes a job; null for what is no verb that can be done to many.
create or replace function rowlock.verb_states(p_verb text) returns text[]
language sql immutable
set search_path = pg_catalog, pg_temp
as $rowlock$
  select case
           when p_verb = 'cancel' then array['queued', 'retryable', 'running']
           when p_verb in ('run_now', 'prioritize') then array['queued', 'retryable']
           when p_verb in ('redrive', 'discard') then array['dead_letter']
           when p_verb in ('retry', 'purge') then array['done', 'failed', 'cancelled']
         end
$rowlock$;
