-- A length of time as whole milliseconds.
create or replace function rowlock.length_ms(p_length interval) returns bigint
language sql immutable parallel safe
as $rowlock$ select (extract(epoch from p_length) * 1000)::bigint $rowlock$;
