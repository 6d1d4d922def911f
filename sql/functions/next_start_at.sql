-- When the rate of a queue allows the next start; null where it allows one now, or where there is no rate. Internal.
create or replace function rowlock.next_start_at(
  p_starts integer, p_per interval, p_burst integer, p_paid_at timestamptz, p_now timestamptz) returns timestamptz
language sql immutable
set search_path = pg_catalog, pg_temp
as $rowlock$
  select case when d.debt > p_burst - 1 then rowlock.rate_paid_at(p_starts, p_per, d.debt - (p_burst - 1), p_now) end
    from (select rowlock.rate_debt(p_starts, p_per, p_burst, p_paid_at, p_now)) as d (debt)
$rowlock$;
