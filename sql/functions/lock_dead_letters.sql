-- Lock those of these jobs that are dead letters: all that can be had at once, or, if p_wait, in id order until the
-- last is free. Returns their ids. Internal.
create or replace function rowlock.lock_dead_letters(p_ids bigint[], p_wait boolean) returns bigint[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $rowlock$
begin
  if p_wait then
    return array(select d.id from rowlock.dead_letter d where d.id = any (p_ids) order by d.id for update);
  end if;
  return array(select d.id from rowlock.dead_letter d where d.id = any (p_ids) order by d.id for update skip locked);
end
$rowlock$;
