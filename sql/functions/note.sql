-- Keep what somebody did, and why. Internal.
create or replace function rowlock.note(
  p_verb text, p_job_id bigint, p_queue text, p_actor text, p_reason text, p_detail jsonb default null) returns void
language sql volatile
set search_path = pg_catalog, pg_temp
as $rowlock$
  insert into rowlock.audit (at, verb, job_id, queue, actor, reason, detail)
  values (rowlock.now(), p_verb, p_job_id, p_queue, left(p_actor, 200), left(p_reason, 1000), p_detail)
$rowlock$;
