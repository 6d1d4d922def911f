-- A length of time as whole milliseconds; null for infinity. Internal.
create or replace function rowlock.length_ms(p_length interval) returns bigint
language sql immutable parallel safe
as $rowlock$ select case when isfinite(p_length) then (extract(epoch from p_length) * 1000)::bigint end $rowlock$;
