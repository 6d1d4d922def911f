-- Run these jobs again later, by their handlers' own decision. No failure is counted.
--
-- p_jobs: [{"id", "claim_id", "after_ms", "ran_ms"?}], in id order.
-- Returns and locks: as settle.
create or replace function rowlock.snooze(p_jobs jsonb) returns jsonb
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $rowlock$
  select rowlock.settle(
    (select jsonb_agg(j.job || jsonb_build_object('outcome', 'snoozed', 'after_ms', coalesce(j.job -> 'after_ms', '0'))
              order by j.n)
       from jsonb_array_elements(p_jobs) with ordinality as j (job, n)),
    rowlock.now())
$rowlock$;
