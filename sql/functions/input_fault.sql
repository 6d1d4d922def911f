-- What is wrong with a value that is to be stored as JSON, as {"sqlstate", "message", "path"}, or null. Internal.
-- The client's rules: size without the blanks that jsonb's own text has, depth, and numbers that a double holds
-- (jsonb holds 131,072 digits in a few bytes, and whoever reads them as JSON gets Infinity).
create or replace function rowlock.input_fault(p_path text, p_value jsonb, p_max_bytes integer) returns jsonb
language plpgsql immutable strict
set search_path = pg_catalog, pg_temp
set standard_conforming_strings = on
as $rowlock$
declare
  v_text text := p_value::text;
  v_bytes integer := octet_length(v_text);
  v_bare text;
begin
  -- Blanks make up at most a third: one after each comma and colon.
  if v_bytes > p_max_bytes then
    if v_bytes <= p_max_bytes + p_max_bytes / 2 then
      v_bytes := octet_length(regexp_replace(v_text, '("(?:[^"\\]|\\.)*")| ', '\1', 'g'));
    end if;
    if v_bytes > p_max_bytes then
      return jsonb_build_object('sqlstate', case when p_path = 'input' then 'RL003' else 'RL001' end, 'path', p_path,
        'message', format('%s must have at most %s bytes: store the data elsewhere and enqueue a reference to it',
          p_path, to_char(p_max_bytes, 'FM9,999,999')));
    end if;
  end if;
  if v_bytes < 300 then
    return null; -- Too short for a number or a depth that is refused.
  end if;
  v_bare := regexp_replace(v_text, '"(?:[^"\\]|\\.)*"', '', 'g');
  if v_bare ~ '[0-9]{155}[0-9]{154}' and exists (
       select from regexp_matches(v_bare, '[0-9]{155}[0-9]{154}[0-9]*', 'g') as m
        where m[1]::numeric > 1.7976931348623157e308) then
    return jsonb_build_object('sqlstate', 'RL002', 'path', p_path,
      'message', format('%s has a number beyond 1.8e308, which JSON readers take as infinite', p_path));
  end if;
  v_bare := regexp_replace(v_bare, '[^][{}]', '', 'g');
  for v_level in 0 .. 500 loop
    exit when v_bare = '';
    if v_level = 500 then
      return jsonb_build_object('sqlstate', 'RL002', 'path', p_path,
        'message', format('%s is nested deeper than 500 levels', p_path));
    end if;
    -- One level a round: what is innermost goes.
    v_bare := regexp_replace(v_bare, '\[\]|\{\}', '', 'g');
  end loop;
  return null;
end
$rowlock$;
