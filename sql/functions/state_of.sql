-- The state of a job, in one consistent look at all its phases. Internal.
-- Errors: RL010.
create or replace function rowlock.state_of(p_id bigint) returns text
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $rowlock$
declare
  v_state text;
begin
  select j.state into v_state from rowlock.job j where j.id = p_id;
  if not found then
    perform rowlock.refuse('RL010', format('no job has the id %s', p_id));
  end if;
  return v_state;
end
$rowlock$;
