-- What people and programs changed, newest first: for psql.
--
-- p_filter: `job_id`, `queue`, `verb`, `actor`: equal; `since`, `until`: half-open. All that are given must hold.
-- p_before: only changes with a smaller id.
-- Returns: at most p_limit rows. One call looks at 50,000 changes at most; where more are behind, a notice says from
--   which id to go on. Programs read changes_page, whose answer has it.
-- Locks: none. Errors: RL001.
create or replace function rowlock.changes(
  p_filter jsonb default '{}', p_limit integer default 50, p_before bigint default null)
returns table (
  id bigint, at timestamptz, verb text, job_id bigint, queue text, actor text, reason text, detail jsonb)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $rowlock$
declare
  v_page jsonb := rowlock.changes_page(p_filter, p_limit, p_before);
begin
  return query
    select c.id, c.at, c.verb, c.job_id, c.queue, c.actor, c.reason, c.detail
      from rows from (jsonb_to_recordset(v_page -> 'changes') as (
             id bigint, at timestamptz, verb text, job_id bigint, queue text, actor text, reason text, detail jsonb))
             with ordinality as c (id, at, verb, job_id, queue, actor, reason, detail, place)
     order by c.place;
  if jsonb_array_length(v_page -> 'changes') < p_limit and v_page ->> 'next' is not null then
    raise notice 'looked at 50,000 changes; older ones may fit: go on with p_before => %', v_page ->> 'next';
  end if;
end
$rowlock$;
