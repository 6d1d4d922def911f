-- How many of the starts of a rate are not paid for yet: as many fewer than its burst may start now. Internal.
--
-- p_paid_at: by when the starts so far are paid for.
-- Why at most a burst: after a step back of the clock, or a change of the rate, more may be owed until the next claim.
create or replace function rowlock.rate_debt(
  p_starts integer, p_per interval, p_burst integer, p_paid_at timestamptz, p_now timestamptz) returns numeric
language sql immutable
set search_path = pg_catalog, pg_temp
as $rowlock$
  select case when p_paid_at > p_now
           then least(p_burst, extract(epoch from p_paid_at - p_now) * p_starts / extract(epoch from p_per))
           else 0
         end::numeric
$rowlock$;
