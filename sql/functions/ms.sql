-- An instant as whole milliseconds since 1970, rounded down, the form in which verbs answer their callers.
-- Null for infinity, which a row written by hand may hold: one such row must not fail a claim.
-- In doubles, for numerics cost more than twice as much; half a microsecond is added, which is above their error and
-- below the clock's step, so that a whole millisecond is not rounded down to the one before.
-- Internal. Stable, as extract is: PostgreSQL puts no immutable function in line whose body is only stable.
create or replace function rowlock.ms(p_at timestamptz) returns bigint
language sql stable parallel safe
as $rowlock$ select case when isfinite(p_at) then floor(date_part('epoch', p_at) * 1000 + 0.0005)::bigint end $rowlock$;
