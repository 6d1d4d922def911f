-- What is wrong with a filter of changes, as filter_fault says it, or null when nothing is. Internal.
create or replace function rowlock.changes_fault(p_filter jsonb) returns jsonb
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $rowlock$
declare
  v_known constant text[] := array['job_id', 'queue', 'verb', 'actor', 'since', 'until'];
  v_path text;
  v_bytes integer;
  v_fault jsonb;
begin
  if jsonb_typeof(p_filter) is distinct from 'object' then
    return jsonb_build_object(
      'sqlstate', 'RL001', 'path', '', 'message', 'a filter must be an object, such as {"verb": "cancel"}');
  end if;
  select k into v_path from jsonb_object_keys(p_filter) as k where k <> all (v_known) order by k limit 1;
  if found then
    return rowlock.option_fault(v_path, format('is an unknown filter%s', rowlock.did_you_mean(v_path, v_known)));
  end if;
  for v_path, v_bytes in values ('queue', 100), ('verb', 100), ('actor', 1000) loop
    continue when not p_filter ? v_path;
    if jsonb_typeof(p_filter -> v_path) <> 'string' then
      return rowlock.option_fault(v_path, 'must be a text');
    elsif octet_length(p_filter ->> v_path) not between 1 and v_bytes then
      return rowlock.option_fault(v_path, format('must have 1 to %s bytes', v_bytes));
    end if;
  end loop;
  select e.key into v_path from jsonb_each(p_filter) as e where e.value = 'null' order by e.key limit 1;
  if found then
    return rowlock.option_fault(v_path, 'must not be null: leave it out where it restricts nothing');
  end if;
  -- An id and a span of time are judged as those of a filter of jobs, and named as they are here.
  v_fault := rowlock.filter_fault(jsonb_strip_nulls(jsonb_build_object('retried_from', p_filter -> 'job_id',
    'enqueued_since', p_filter -> 'since', 'enqueued_until', p_filter -> 'until')));
  return case when v_fault is not null then rowlock.option_fault(
    case v_fault ->> 'path' when 'retried_from' then 'job_id' else replace(v_fault ->> 'path', 'enqueued_', '') end,
    replace(substr(v_fault ->> 'message', length(v_fault ->> 'path') + 2), 'enqueued_', '')) end;
end
$rowlock$;
