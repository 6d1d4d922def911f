-- What is wrong with a backoff as a caller wrote it, or null. Internal.
create or replace function rowlock.backoff_fault(p_backoff jsonb) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $rowlock$
declare
  v_max constant numeric := 2592000000; -- 30 days
  v_min_ms numeric;
  v_max_ms numeric;
begin
  if coalesce(jsonb_typeof(p_backoff), 'null') = 'null' then
    return null;
  elsif jsonb_typeof(p_backoff) <> 'object' then
    return 'must be an object with a type';
  end if;
  case p_backoff ->> 'type'
    when 'exponential' then
      if (p_backoff - array['type', 'min_ms', 'max_ms', 'factor']) <> '{}' then
        return 'of type exponential has min_ms, max_ms and factor';
      end if;
      v_min_ms := coalesce((p_backoff ->> 'min_ms')::numeric, 5000);
      v_max_ms := coalesce((p_backoff ->> 'max_ms')::numeric, 3600000);
      if v_min_ms < 0 or v_max_ms > v_max or v_min_ms > v_max_ms then
        return 'needs 0 <= min_ms <= max_ms <= 30 days';
      elsif coalesce((p_backoff ->> 'factor')::numeric, 2) not between 1 and 10 then
        return 'needs a factor from 1 to 10';
      end if;
    when 'fixed' then
      if (p_backoff - array['type', 'delay_ms']) <> '{}' or not p_backoff ? 'delay_ms'
         or coalesce((p_backoff ->> 'delay_ms')::numeric, -1) not between 0 and v_max then
        return 'of type fixed has delay_ms, from 0 to 30 days';
      end if;
    when 'list' then
      if (p_backoff - array['type', 'delays_ms']) <> '{}'
         or jsonb_typeof(p_backoff -> 'delays_ms') is distinct from 'array'
         or jsonb_array_length(p_backoff -> 'delays_ms') not between 1 and 100
         or exists (select from jsonb_array_elements_text(p_backoff -> 'delays_ms') as d
                     where d is null or d::numeric not between 0 and v_max) then
        return 'of type list has delays_ms: 1 to 100 of them, each from 0 to 30 days';
      end if;
    else
      return 'has the type exponential, fixed or list';
  end case;
  return null;
exception when data_exception or case_not_found then
  return 'has a figure that is no number of milliseconds';
end
$rowlock$;
