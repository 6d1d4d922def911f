-- An instant as whole milliseconds since 1970, rounded down, the form in which verbs answer their callers.
-- Stable, as extract is: PostgreSQL puts no immutable function in line whose body is only stable.
create or replace function rowlock.ms(p_at timestamptz) returns bigint
language sql stable parallel safe
as $rowlock$ select floor(extract(epoch from p_at) * 1000)::bigint $rowlock$;
