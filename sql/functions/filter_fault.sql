-- What is wrong with a filter: {"sqlstate", "message", "path"}, or null when nothing is. The client has the same rules
-- and words; a test gives both the same faults.
--
-- p_filter: all given conditions must hold. Equal, one or a list of up to 100: `state` (the seven states, `scheduled`
--   and `due`), `queue`, `kind`, `tenant_id`, `cause`. Equal: `dedupe_key`, `idempotency_key`, `error` (the error_line
--   of a dead letter), `worker_id`, `retried_from`. Contained: `metadata`. Half-open, [since, until): `enqueued_…`,
--   `available_…`, `ended_…` (finished, or dead). `all`: true restricts nothing, on purpose.
-- A null is refused, not taken for absent: a variable that was never set must not widen a change to every job.
-- An instant without an offset is UTC, whoever asks: a filter may be kept and read by another session.
create or replace function rowlock.filter_fault(p_filter jsonb) returns jsonb
language plpgsql stable
set search_path = pg_catalog, pg_temp
set datestyle = 'ISO, YMD'
set timezone = 'UTC'
as $rowlock$
declare
  v_known constant text[] := array['state', 'queue', 'kind', 'tenant_id', 'cause', 'dedupe_key', 'idempotency_key',
    'error', 'metadata', 'worker_id', 'retried_from', 'enqueued_since', 'enqueued_until', 'available_since',
    'available_until', 'ended_since', 'ended_until', 'all'];
  v_states constant text[] := array['queued', 'retryable', 'running', 'done', 'failed', 'cancelled', 'dead_letter',
    'scheduled', 'due'];
  v_path text;
  v_bytes integer;
  v_value jsonb;
  v_text text;
  v_at timestamptz;
  v_since timestamptz;
begin
  if jsonb_typeof(p_filter) is distinct from 'object' then
    return jsonb_build_object(
      'sqlstate', 'RL001', 'path', '', 'message', 'a filter must be an object, such as {"state": "failed"}');
  end if;
  select k into v_path from jsonb_object_keys(p_filter) as k where k <> all (v_known) order by k limit 1;
  if found then
    return rowlock.option_fault(v_path, format('is an unknown filter%s', rowlock.did_you_mean(v_path, v_known)));
  end if;
  select e.key into v_path from jsonb_each(p_filter) as e where e.value = 'null' order by e.key limit 1;
  if found then
    return rowlock.option_fault(v_path, 'must not be null: leave it out where it restricts nothing');
  end if;

  for v_path, v_bytes, v_value in
    select n.name, n.bytes, p_filter -> n.name
      from (values ('state', 100), ('queue', 100), ('kind', 100), ('tenant_id', 200), ('cause', 100))
        as n (name, bytes)
     where p_filter ? n.name
  loop
    if jsonb_typeof(v_value) = 'array' then
      if jsonb_array_length(v_value) not between 1 and 100 then
        return rowlock.option_fault(v_path, 'must have 1 to 100 entries');
      end if;
    else
      v_value := jsonb_build_array(v_value);
    end if;
    for v_value in select e from jsonb_array_elements(v_value) as e loop
      v_text := v_value #>> '{}';
      if jsonb_typeof(v_value) <> 'string' then
        return rowlock.option_fault(v_path, 'must be a text or a list of texts');
      elsif v_path = 'state' and v_text <> all (v_states) then
        return rowlock.option_fault(v_path, format('must be one of %s%s', array_to_string(v_states, ', '),
          rowlock.did_you_mean(left(v_text, 100), v_states)));
      elsif octet_length(v_text) not between 1 and v_bytes then
        return rowlock.option_fault(v_path, format('must have 1 to %s bytes', v_bytes));
      end if;
    end loop;
  end loop;

  for v_path, v_bytes, v_value in
    select n.name, n.bytes, p_filter -> n.name
      from (values ('dedupe_key', 512), ('idempotency_key', 512), ('error', 800)) as n (name, bytes)
     where p_filter ? n.name
  loop
    if jsonb_typeof(v_value) <> 'string' then
      return rowlock.option_fault(v_path, 'must be a text');
    elsif octet_length(v_value #>> '{}') not between 1 and v_bytes then
      return rowlock.option_fault(v_path, format('must have 1 to %s bytes', v_bytes));
    end if;
  end loop;
  if p_filter ? 'error' and p_filter ? 'state' and 'dead_letter' <> all (rowlock.texts(p_filter -> 'state')) then
    return rowlock.option_fault('error', 'is of dead letters: leave state out, or have dead_letter in it');
  end if;

  if p_filter ? 'metadata' then
    if jsonb_typeof(p_filter -> 'metadata') <> 'object' then
      return rowlock.option_fault('metadata', 'must be an object');
    end if;
    v_value := rowlock.input_fault('metadata', p_filter -> 'metadata', 4096);
    if v_value is not null then
      return v_value;
    end if;
  end if;
  if p_filter ? 'worker_id' and (jsonb_typeof(p_filter -> 'worker_id') <> 'string' or p_filter ->> 'worker_id'
       !~* '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$') then
    return rowlock.option_fault('worker_id', 'must be the id of a worker, a UUID');
  end if;
  if p_filter ? 'retried_from' then
    v_text := p_filter ->> 'retried_from';
    if jsonb_typeof(p_filter -> 'retried_from') not in ('string', 'number') or v_text !~ '^[1-9][0-9]{0,18}$'
       or v_text::numeric > 9223372036854775807 then
      return rowlock.option_fault('retried_from', 'must be the id of a job, a string of digits');
    end if;
  end if;

  for v_path, v_value in
    select n.name, p_filter -> n.name
      from (values (1, 'enqueued_since'), (2, 'enqueued_until'), (3, 'available_since'), (4, 'available_until'),
                   (5, 'ended_since'), (6, 'ended_until')) as n (n, name)
     where p_filter ? n.name
     order by n.n
  loop
    v_text := v_value #>> '{}';
    begin
      v_at := case when jsonb_typeof(v_value) = 'string' and v_text ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}'
                then v_text::timestamptz end;
    exception when data_exception then
      v_at := null;
    end;
    if v_at is null then
      return rowlock.option_fault(v_path, 'must be an instant, such as ''2030-01-31T12:00:00Z''');
    end if;
    if v_path like '%until' then
      v_since := (p_filter ->> replace(v_path, '_until', '_since'))::timestamptz;
      if v_at <= v_since then
        return rowlock.option_fault(v_path, format('must be after %s', replace(v_path, '_until', '_since')));
      end if;
    end if;
  end loop;
  if p_filter ? 'all' and p_filter -> 'all' <> 'true' then
    return rowlock.option_fault('all', 'can only be true');
  end if;
  return null;
end
$rowlock$;
