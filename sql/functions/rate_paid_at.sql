-- By when so many starts of a rate are paid for, rounded up: what is rounded is never a start too many. Internal.
create or replace function rowlock.rate_paid_at(
  p_starts integer, p_per interval, p_debt numeric, p_now timestamptz) returns timestamptz
language sql immutable
set search_path = pg_catalog, pg_temp
as $rowlock$
  select p_now + ceil(p_debt * extract(epoch from p_per) * 1000000 / p_starts)::float8 * interval '1 microsecond'
$rowlock$;
