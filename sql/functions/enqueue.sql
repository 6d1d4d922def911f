-- Put one job in: from any language, from psql, from a trigger. This signature stays for ever.
--
-- options: as a job of enqueue_many, without kind and input:
--   {"queue": "erp", "delay": "10 minutes", "dedupe_key": "…"}.
-- Returns: the job's id, and whether it was created: false when a live job of the queue has the dedupe key, or
--   when the queue is full and drops what comes; then the id is that of no job.
-- Transaction: may run in the caller's: the job exists when, and only if, it commits. Locks: its dedupe key.
-- Errors: RL001, RL003, RL018.
create or replace function rowlock.enqueue(kind text, input jsonb default '{}', options jsonb default '{}')
returns table (id bigint, created boolean)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $rowlock$
declare
  v_reply json;
begin
  if options is not null and jsonb_typeof(options) <> 'object' then
    perform rowlock.refuse('RL001', 'options must be an object', '{"path": "options"}');
  elsif options ?| array['kind', 'input'] then
    perform rowlock.refuse('RL001', 'kind and input are arguments of their own, not options', '{"path": "options"}');
  end if;
  v_reply := rowlock.enqueue_many(jsonb_build_array(
    coalesce(options, '{}') || jsonb_build_object('kind', kind, 'input', coalesce(input, 'null'))));
  return query select (v_reply -> 'ids' ->> 0)::bigint, json_array_length(v_reply -> 'existing') = 0;
end
$rowlock$;
