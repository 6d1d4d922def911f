-- These handlers decided that their jobs are to be cancelled.
--
-- p_jobs: [{"id", "claim_id", "reason"?, "ran_ms"?}], in id order.
-- Returns and locks: as settle.
create or replace function rowlock.abandon(p_jobs jsonb) returns jsonb
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $rowlock$
  select rowlock.settle(
    (select jsonb_agg(j.job || jsonb_build_object('outcome', 'cancelled', 'cancelled', true) order by j.n)
       from jsonb_array_elements(p_jobs) with ordinality as j (job, n)),
    rowlock.now())
$rowlock$;
