-- Those of these jobs that a filter finds, all of them where there is none. Internal: verbs ask it in a statement after
-- they have locked a job, since what a look before the lock has seen may have changed.
create or replace function rowlock.fits(p_ids bigint[], p_filter jsonb) returns bigint[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $rowlock$
declare
  v_ids bigint[];
begin
  if p_filter is null or p_ids = '{}' then
    return p_ids;
  end if;
  select s.ids into v_ids from rowlock.search(p_filter, p_ids => p_ids, p_limit => cardinality(p_ids)) as s;
  return coalesce(v_ids, '{}');
end
$rowlock$;
