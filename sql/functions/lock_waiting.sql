-- Lock those of these jobs that wait: all that can be had at once, or, if p_wait, in id order until the last is free.
-- Internal.
create or replace function rowlock.lock_waiting(p_ids bigint[], p_wait boolean) returns tid[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $rowlock$
begin
  if p_wait then
    return array(select w.ctid from rowlock.waiting w where w.id = any (p_ids) order by w.id for update);
  end if;
  return array(select w.ctid from rowlock.waiting w where w.id = any (p_ids) order by w.id for update skip locked);
end
$rowlock$;
