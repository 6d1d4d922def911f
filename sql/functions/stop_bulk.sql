-- Stop a bulk change: what it has done stays done, and no step follows. One that has ended is left as it is.
--
-- Returns: the bulk change.
-- Transaction: may run in the caller's. Locks: its row, so that a step in progress is waited for; 2 s, then it says so.
-- Errors: RL014, RL015 a step that somebody does has not ended.
create or replace function rowlock.stop_bulk(p_id bigint, p_actor text default null, p_reason text default null)
returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '2s'
as $rowlock$
declare
  v_now timestamptz := rowlock.now();
  v_bulk rowlock.bulk;
begin
  begin
    select b.* into v_bulk from rowlock.bulk b where b.id = p_id for update;
  exception when lock_not_available then
    perform rowlock.refuse('RL015', format('a step of the bulk change %s has not ended', p_id));
  end;
  if not found then
    perform rowlock.refuse('RL014', format('no bulk change has the id %s', p_id));
  end if;
  if v_bulk.ended_at is null then
    update rowlock.bulk b set ended_at = v_now, outcome = 'stopped' where b.id = p_id returning b.* into v_bulk;
    perform rowlock.note('stop_bulk', null, null, p_actor, p_reason, jsonb_build_object('id', p_id::text));
  end if;
  return rowlock.bulk_json(v_bulk);
end
$rowlock$;
