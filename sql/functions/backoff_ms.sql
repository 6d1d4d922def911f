-- How long to wait after so many failures, in ms: the stored policy, or exponential from 5 s to 1 h.
-- Exponential: from min to min(max, min × factor^failures), evenly spread (full jitter above the minimum).
-- Internal.
-- Source: src/ground/backoff.ts has the same rule; a test holds the two together.
create or replace function rowlock.backoff_ms(p_policy jsonb, p_failures integer, p_random double precision)
returns bigint
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $rowlock$
declare
  v_min double precision;
  v_max double precision;
  v_factor double precision;
  v_failures integer := greatest(coalesce(p_failures, 1), 1);
  v_steps integer;
  v_ms double precision;
begin
  -- Read here and not where they are declared: the handler below guards only what is between begin and end.
  v_min := coalesce((p_policy ->> 'min_ms')::double precision, 5000);
  v_max := coalesce((p_policy ->> 'max_ms')::double precision, 3600000);
  v_factor := coalesce((p_policy ->> 'factor')::double precision, 2);
  case coalesce(p_policy ->> 'type', 'exponential')
    when 'fixed' then
      v_ms := (p_policy ->> 'delay_ms')::double precision;
    when 'list' then
      v_steps := jsonb_array_length(p_policy -> 'delays_ms');
      v_ms := (p_policy -> 'delays_ms' ->> (least(v_failures, v_steps) - 1))::double precision;
    else
      -- 128 doublings are beyond every maximum; a larger exponent would only overflow.
      v_max := least(v_max, v_min * power(v_factor, least(v_failures, 128)));
      v_ms := v_min + p_random * greatest(v_max - v_min, 0);
  end case;
  -- A policy written by hand may hold anything; what can't be read waits as the default does.
  return floor(least(greatest(coalesce(v_ms, 5000), 0), 2592000000))::bigint;
exception when others then
  return 5000;
end
$rowlock$;
