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
  -- An id and a span of time are judged as those of a filter of jobs, under the names they have here.
  for v_path, v_fault in
    select n.name, rowlock.filter_fault(jsonb_strip_nulls(jsonb_build_object(n.known, p_filter -> n.name)))
      from (values (1, 'job_id', 'retried_from'), (2, 'since', 'enqueued_since'), (3, 'until', 'enqueued_until'))
        as n (n, name, known)
     where p_filter ? n.name
     order by n.n
  loop
    if p_filter -> v_path = 'null' then
      return rowlock.option_fault(v_path, 'must not be null: leave it out where it restricts nothing');
    elsif v_fault is not null then
      return rowlock.option_fault(v_path, substr(v_fault ->> 'message', length(v_fault ->> 'path') + 2));
    end if;
  end loop;
  return null;
end
$rowlock$;
