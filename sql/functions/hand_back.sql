-- Return claimed jobs to their lines, `available_at` kept: those that never started, and at shutdown those whose
-- handlers were aborted for it (cause `shutdown`). No failure is counted.
--
-- p_jobs: [{"id", "claim_id", "cause"?, "ran_ms"?}], in id order.
-- Returns and locks: as settle.
create or replace function rowlock.hand_back(p_jobs jsonb) returns jsonb
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $rowlock$
  select rowlock.settle(
    (select jsonb_agg(j.job || jsonb_build_object('outcome', 'handed_back') order by j.n)
       from jsonb_array_elements(p_jobs) with ordinality as j (job, n)),
    rowlock.now())
$rowlock$;
