-- Refuse a list that is asked for wrongly: its filter, how long a page is, where it starts. Internal.
-- Errors: RL001.
create or replace function rowlock.require_list(p_filter jsonb, p_limit integer, p_before bigint) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $rowlock$
declare
  v_fault jsonb := rowlock.filter_fault(p_filter);
begin
  if v_fault is null and coalesce(p_limit, 0) not between 1 and 1000 then
    v_fault := rowlock.option_fault('limit', 'must be from 1 to 1,000');
  elsif v_fault is null and p_before < 1 then
    v_fault := rowlock.option_fault('before', 'must be the id that ended the page before');
  end if;
  if v_fault is not null then
    perform rowlock.refuse(v_fault ->> 'sqlstate', v_fault ->> 'message', v_fault - 'sqlstate' - 'message');
  end if;
end
$rowlock$;
