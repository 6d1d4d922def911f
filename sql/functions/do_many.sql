-- The verb of a bulk change, done to these jobs: [[id, answer, detail], …] in their order. Internal.
create or replace function rowlock.do_many(
  p_verb text, p_ids bigint[], p_args jsonb, p_actor text, p_reason text, p_filter jsonb) returns jsonb
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $rowlock$
declare
  v_answers jsonb;
begin
  if p_verb = 'cancel' then
    select jsonb_agg(jsonb_build_array(a.id::text, a.answer, a.detail) order by a.n) into v_answers
      from rowlock.cancel_many(p_ids, p_actor, p_reason, p_filter)
             with ordinality as a (id, answer, detail, n);
  elsif p_verb = 'run_now' then
    select jsonb_agg(jsonb_build_array(a.id::text, a.answer, a.detail) order by a.n) into v_answers
      from rowlock.run_now_many(p_ids, p_actor, p_reason, p_filter)
             with ordinality as a (id, answer, detail, n);
  elsif p_verb = 'prioritize' then
    select jsonb_agg(jsonb_build_array(a.id::text, a.answer, a.detail) order by a.n) into v_answers
      from rowlock.prioritize_many(p_ids, (p_args ->> 'priority')::numeric::integer, p_actor, p_reason, p_filter)
             with ordinality as a (id, answer, detail, n);
  elsif p_verb = 'redrive' then
    select jsonb_agg(jsonb_build_array(a.id::text, a.answer, a.detail) order by a.n) into v_answers
      from rowlock.redrive_many(p_ids, p_actor, p_reason, p_filter)
             with ordinality as a (id, answer, detail, n);
  elsif p_verb = 'discard' then
    select jsonb_agg(jsonb_build_array(a.id::text, a.answer, a.detail) order by a.n) into v_answers
      from rowlock.discard_many(p_ids, p_actor, p_reason, p_filter)
             with ordinality as a (id, answer, detail, n);
  elsif p_verb = 'retry' then
    select jsonb_agg(jsonb_build_array(a.id::text, a.answer, a.detail) order by a.n) into v_answers
      from rowlock.retry_many(p_ids, p_actor, p_reason, p_filter)
             with ordinality as a (id, answer, detail, n);
  elsif p_verb = 'purge' then
    select jsonb_agg(jsonb_build_array(a.id::text, a.answer, a.detail) order by a.n) into v_answers
      from rowlock.purge_many(p_ids, p_actor, p_reason, p_filter)
             with ordinality as a (id, answer, detail, n);
  end if;
  return coalesce(v_answers, '[]');
end
$rowlock$;
