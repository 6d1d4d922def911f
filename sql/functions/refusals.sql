-- Why a verb does not change these jobs, by id, in one consistent look: `not_found`, `wrong_state` with the state
-- (`already_ended` for a cancel), `changed` when the filter does not find it any more. A job that is not in the reply
-- is where the verb applies, and moved when it was looked for: look again. Internal.
create or replace function rowlock.refusals(p_verb text, p_ids bigint[], p_filter jsonb) returns jsonb
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $rowlock$
declare
  v_said jsonb;
begin
  if p_ids = '{}' then
    return '{}';
  end if;
  with fit as materialized (
    select g.id from unnest(rowlock.fits(p_ids, p_filter)) as g (id)
  ), seen as materialized (
    select j.id, j.state from rowlock.job j where j.id = any (p_ids)
  )
  select jsonb_object_agg(g.id, case
           when s.id is null then '["not_found", null]'::jsonb
           when f.id is null then '["changed", null]'
           when p_verb = 'cancel' then '["already_ended", null]'
           else jsonb_build_array('wrong_state', jsonb_build_object('state', s.state))
         end)
    into v_said
    from unnest(p_ids) as g (id)
    left join seen s on s.id = g.id
    left join fit f on f.id = g.id
   where s.id is null or f.id is null or s.state <> all (rowlock.verb_states(p_verb));
  return coalesce(v_said, '{}');
end
$rowlock$;
