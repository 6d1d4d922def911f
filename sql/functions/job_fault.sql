-- What is wrong with a job as a caller wrote it: {"sqlstate", "message", "path"}, or null when nothing is. Internal.
-- The client has the same rules and words; a test gives both the same faults.
create or replace function rowlock.job_fault(p_job jsonb) returns jsonb
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $rowlock$
declare
  v_known constant text[] := array['kind', 'input', 'queue', 'priority', 'delay', 'available_at', 'expires_at',
    'expires_in', 'tenant_id', 'dedupe_key', 'idempotency_key', 'max_attempts', 'backoff', 'timeout', 'metadata'];
  v_path text;
  v_value jsonb;
  v_bytes integer;
  v_number numeric;
  v_length interval;
  v_now timestamptz;
begin
  if jsonb_typeof(p_job) is distinct from 'object' then
    return jsonb_build_object(
      'sqlstate', 'RL001', 'path', '', 'message', 'a job must be an object with kind and input');
  end if;
  select k into v_path from jsonb_object_keys(p_job) as k where k <> all (v_known) order by k limit 1;
  if found then
    return rowlock.option_fault(v_path, format('is an unknown option%s', rowlock.did_you_mean(v_path, v_known)));
  end if;
  if not p_job ? 'input' then
    return rowlock.option_fault('input', 'is missing; a job without one has null');
  end if;

  for v_path, v_bytes in
    values ('kind', 100), ('queue', 100), ('tenant_id', 200), ('dedupe_key', 512), ('idempotency_key', 512)
  loop
    v_value := p_job -> v_path;
    continue when v_path <> 'kind' and coalesce(jsonb_typeof(v_value), 'null') = 'null';
    if jsonb_typeof(v_value) is distinct from 'string' then
      return rowlock.option_fault(v_path, 'must be a string');
    elsif octet_length(v_value #>> '{}') not between 1 and v_bytes then
      return rowlock.option_fault(v_path, format('must have 1 to %s bytes', v_bytes));
    elsif v_value #>> '{}' ~ '[[:cntrl:]]' or not rowlock.is_trimmed(v_value #>> '{}') then
      return rowlock.option_fault(v_path, 'must have no control characters and no blanks at its ends');
    end if;
  end loop;

  for v_path, v_value in
    select n.name, p_job -> n.name from (values ('priority'), ('max_attempts')) as n (name)
     where coalesce(jsonb_typeof(p_job -> n.name), 'null') <> 'null'
  loop
    if jsonb_typeof(v_value) <> 'number' or (v_value #>> '{}')::numeric <> trunc((v_value #>> '{}')::numeric) then
      return rowlock.option_fault(v_path, 'must be a whole number');
    end if;
    v_number := (v_value #>> '{}')::numeric;
    if v_path = 'priority' and v_number not between -10 and 10 then
      return rowlock.option_fault(v_path, 'must be from -10 to 10');
    elsif v_path = 'max_attempts' and v_number not between 1 and 100 then
      return rowlock.option_fault(v_path, 'must be from 1 to 100');
    end if;
  end loop;

  for v_path, v_value in
    select n.name, p_job -> n.name from (values ('delay'), ('timeout'), ('expires_in')) as n (name)
     where coalesce(jsonb_typeof(p_job -> n.name), 'null') <> 'null'
  loop
    begin
      v_length := case when jsonb_typeof(v_value) = 'string' then (v_value #>> '{}')::interval end;
    exception when others then
      v_length := null;
    end;
    if v_length is null then
      return rowlock.option_fault(v_path, 'must be an interval, such as ''30s'' or ''10 minutes''');
    elsif v_path = 'timeout' and (v_length < interval '10 ms' or v_length > interval '7 days') then
      return rowlock.option_fault(v_path, 'must be from 10 ms to 7 days');
    elsif v_length < interval '0' or v_length > interval '3650 days' then
      return rowlock.option_fault(v_path, 'must be from 0 to 3,650 days');
    end if;
  end loop;

  v_now := rowlock.now();
  for v_path, v_value in
    select n.name, p_job -> n.name from (values ('available_at'), ('expires_at')) as n (name)
     where coalesce(jsonb_typeof(p_job -> n.name), 'null') <> 'null'
  loop
    declare
      v_at timestamptz;
    begin
      v_at := case when jsonb_typeof(v_value) = 'string' then (v_value #>> '{}')::timestamptz end;
      if v_at is null or not isfinite(v_at) or v_at < '0001-01-01' or v_at > v_now + interval '3650 days' then
        return rowlock.option_fault(
          v_path, 'must be an instant within the next ten years, such as ''2030-01-31T12:00:00Z''');
      end if;
    exception when data_exception then
      return rowlock.option_fault(v_path, 'must be an instant, such as ''2030-01-31T12:00:00Z''');
    end;
  end loop;
  if p_job ->> 'delay' is not null and p_job ->> 'available_at' is not null then
    return rowlock.option_fault('delay', 'and available_at exclude each other');
  elsif p_job ->> 'expires_in' is not null and p_job ->> 'expires_at' is not null then
    return rowlock.option_fault('expires_in', 'and expires_at exclude each other');
  end if;

  v_path := rowlock.backoff_fault(p_job -> 'backoff');
  if v_path is not null then
    return rowlock.option_fault('backoff', v_path);
  end if;
  v_value := p_job -> 'metadata';
  if coalesce(jsonb_typeof(v_value), 'null') <> 'null' then
    if jsonb_typeof(v_value) <> 'object' then
      return rowlock.option_fault('metadata', 'must be an object');
    end if;
  end if;
  return coalesce(
    rowlock.input_fault('metadata', v_value, 4096),
    rowlock.input_fault('input', p_job -> 'input', 1000000));
end
$rowlock$;
