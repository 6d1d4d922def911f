-- The verb of a bulk change, done to these jobs: an answer for each, in their order. Internal.
create or replace function rowlock.do_many(
  p_verb text, p_ids bigint[], p_args jsonb, p_actor text, p_reason text, p_filter jsonb)
returns table (id bigint, answer text, detail jsonb)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $rowlock$
begin
  if p_verb = 'cancel' then
    return query select a.* from rowlock.cancel_many(p_ids, p_actor, p_reason, p_filter) as a;
  elsif p_verb = 'run_now' then
    return query select a.* from rowlock.run_now_many(p_ids, p_actor, p_reason, p_filter) as a;
  elsif p_verb = 'prioritize' then
    return query select a.* from rowlock.prioritize_many(
      p_ids, (p_args ->> 'priority')::numeric::integer, p_actor, p_reason, p_filter) as a;
  elsif p_verb = 'redrive' then
    return query select a.* from rowlock.redrive_many(p_ids, p_actor, p_reason, p_filter) as a;
  elsif p_verb = 'discard' then
    return query select a.* from rowlock.discard_many(p_ids, p_actor, p_reason, p_filter) as a;
  elsif p_verb = 'retry' then
    return query select a.* from rowlock.retry_many(p_ids, p_actor, p_reason, p_filter) as a;
  elsif p_verb = 'purge' then
    return query select a.* from rowlock.purge_many(p_ids, p_actor, p_reason, p_filter) as a;
  end if;
end
$rowlock$;
