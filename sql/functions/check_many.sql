-- The ids of one call, each once and in order, after a look at the call itself. Only the verb for one waits for what
-- others hold: a call for many that waited would hold rows and keys meanwhile. Internal: each verb for many jobs begins
-- with it.
-- Errors: RL001, RL030.
create or replace function rowlock.check_many(
  p_verb text, p_ids bigint[], p_filter jsonb, p_wait boolean default false) returns bigint[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $rowlock$
declare
  v_fault jsonb;
begin
  perform rowlock.require_read_committed(p_verb);
  if p_ids is null then
    perform rowlock.refuse('RL001', 'ids must be an array', '{"path": "ids"}');
  end if;
  if cardinality(p_ids) > 1000 then
    perform rowlock.refuse('RL001', format('at most 1000 ids in one call; got %s', cardinality(p_ids)),
      '{"path": "ids"}');
  end if;
  if p_wait and cardinality(p_ids) > 1 then
    perform rowlock.refuse('RL001', 'only a call for one job may wait for its row', '{"path": "wait"}');
  end if;
  if p_filter is not null then
    v_fault := rowlock.filter_fault(p_filter);
    if v_fault is not null then
      perform rowlock.refuse(v_fault ->> 'sqlstate', v_fault ->> 'message',
        jsonb_build_object('path', v_fault -> 'path'));
    end if;
  end if;
  return array(select distinct g.id from unnest(p_ids) as g (id) where g.id is not null order by g.id);
end
$rowlock$;
