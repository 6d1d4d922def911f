-- What is wrong with the limits among settings of a queue, in the form that job_fault answers; null when nothing is.
-- Internal.
--
-- p_had_bound: whether the queue has a bound on what waits already.
create or replace function rowlock.limits_fault(p_settings jsonb, p_had_bound boolean) returns jsonb
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $rowlock$
declare
  v_known constant text[] := array['starts', 'per', 'burst'];
  v_running constant jsonb := p_settings -> 'max_running';
  v_rate constant jsonb := p_settings -> 'rate';
  v_waiting constant jsonb := p_settings -> 'max_waiting';
  v_full constant jsonb := p_settings -> 'when_full';
  v_unknown text;
begin
  if v_running <> 'null' and not rowlock.is_whole(v_running, 1, 100000) then
    return rowlock.option_fault('max_running', 'must be from 1 to 100,000, or null');
  end if;
  if v_rate <> 'null' then
    if jsonb_typeof(v_rate) <> 'object' then
      return rowlock.option_fault('rate', 'must be {"starts", "per", "burst"}, or null');
    end if;
    select k into v_unknown from jsonb_object_keys(v_rate) as k where k <> all (v_known) limit 1;
    if found then
      return rowlock.option_fault('rate.' || v_unknown,
        'is no part of a rate' || rowlock.did_you_mean(v_unknown, v_known));
    end if;
    if rowlock.is_whole(v_rate -> 'starts', 1, 100000) is not true then
      return rowlock.option_fault('rate.starts', 'must be from 1 to 100,000');
    end if;
    if (rowlock.length_of(v_rate -> 'per') between interval '1 ms' and interval '30 days') is not true then
      return rowlock.option_fault('rate.per',
        'must be a length of time with its unit, such as ''1 s'', from 1 ms to 30 days');
    end if;
    if v_rate -> 'burst' <> 'null' and not rowlock.is_whole(v_rate -> 'burst', 1, 100000) then
      return rowlock.option_fault('rate.burst', 'must be from 1 to 100,000');
    end if;
  end if;
  if v_waiting <> 'null' and not rowlock.is_whole(v_waiting, 1, 1000000000) then
    return rowlock.option_fault('max_waiting', 'must be from 1 to 1,000,000,000, or null');
  end if;
  if v_full not in ('null', '"refuse"', '"drop"') then
    return rowlock.option_fault('when_full', 'must be refuse or drop, or null');
  end if;
  if v_full <> 'null' and not (case when v_waiting is null then p_had_bound else v_waiting <> 'null' end) then
    return rowlock.option_fault('when_full', 'says what becomes of jobs above max_waiting: set that too');
  end if;
  return null;
end
$rowlock$;
