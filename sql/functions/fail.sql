-- The handlers of these jobs failed, timed out, or were aborted. Each job goes where its failures say: back with the
-- backoff, to the dead letters, or, when its error is permanent, to history as failed.
--
-- p_jobs: [{"id", "claim_id", "cause", "error", "outcome"?, "permanent"?, "after_ms"?, "ran_ms"?}], in id order;
--   outcome: failed (default) or timed_out; `after_ms`: the worker's own decision instead of the stored backoff.
-- Returns and locks: as settle.
create or replace function rowlock.fail(p_jobs jsonb) returns jsonb
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $rowlock$
  select rowlock.settle(
    (select jsonb_agg(jsonb_build_object('outcome', 'failed') || j.job || jsonb_build_object('failed', true)
              order by j.n)
       from jsonb_array_elements(p_jobs) with ordinality as j (job, n)),
    rowlock.now())
$rowlock$;
