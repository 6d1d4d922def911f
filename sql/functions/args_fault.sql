-- What is wrong with the arguments of a bulk change: {"message", "path"}, or null when nothing is. Internal.
create or replace function rowlock.args_fault(p_verb text, p_args jsonb) returns jsonb
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $rowlock$
declare
  v_known constant text[] := case when p_verb = 'prioritize' then array['priority', 'anew'] else array['anew'] end;
  v_unknown text;
begin
  if jsonb_typeof(p_args) <> 'object' then
    return '{"message": "args must be an object", "path": "args"}';
  end if;
  select k into v_unknown from jsonb_object_keys(p_args) as k where k <> all (v_known) order by k limit 1;
  if found then
    return jsonb_build_object('path', v_unknown, 'message', format('%s takes no argument %s%s', p_verb,
      left(v_unknown, 100), rowlock.did_you_mean(left(v_unknown, 100), v_known)));
  end if;
  if p_args ? 'anew' and jsonb_typeof(p_args -> 'anew') <> 'boolean' then
    return '{"message": "anew must be true or false", "path": "anew"}';
  end if;
  -- A case, since what is no number cannot be compared.
  if p_verb = 'prioritize' and not (
       case when jsonb_typeof(p_args -> 'priority') = 'number'
         then (p_args -> 'priority')::numeric between -10 and 10 and (p_args -> 'priority')::numeric % 1 = 0
         else false
       end) then
    return '{"message": "priority must be from -10 to 10", "path": "priority"}';
  end if;
  return null;
end
$rowlock$;
