-- Change the priority of waiting jobs, as `prioritize` changes that of one, in rounds with fresh looks.
--
-- p_filter: only jobs that it finds when their row is locked.
-- p_wait: wait for a row that others have locked, instead of passing it by; for one id only.
-- Returns: a row for each id, in order: `prioritized`, `not_found`, `wrong_state` with its state, `busy` when it kept
--   moving, `changed` when p_filter does not find it any more. Each that was changed has a row in audit.
-- Transaction: may run in the caller's (READ COMMITTED). Locks: rows in waiting (skip locked).
-- Errors: RL001, RL030.
create or replace function rowlock.prioritize_many(
  p_ids bigint[], p_priority integer, p_actor text default null, p_reason text default null,
  p_filter jsonb default null, p_wait boolean default false)
returns table (id bigint, answer text, detail jsonb)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $rowlock$
declare
  v_rounds integer := case when p_wait then 20 else 10 end;
  v_left bigint[];
  v_said jsonb := '{}';
  v_tids tid[];
  v_fit bigint[];
  v_done bigint[];
  v_queues jsonb;
begin
  if p_priority is null or p_priority not between -10 and 10 then
    perform rowlock.refuse('RL001', 'priority must be from -10 to 10', '{"path": "priority"}');
  end if;
  v_left := rowlock.check_many('prioritize', p_ids, p_filter, p_wait);
  for v_round in 1 .. v_rounds loop
    v_tids := rowlock.lock_waiting(v_left, p_wait);
    if v_tids <> '{}' then
      v_fit := rowlock.fits(v_left, p_filter);
      with moved as (
        update rowlock.waiting w
           set priority = p_priority
         where w.ctid = any (v_tids) and w.id = any (v_fit)
        returning w.id, w.queue
      )
      select coalesce(array_agg(m.id order by m.id), '{}'), jsonb_object_agg(m.id, m.queue)
        into v_done, v_queues
        from moved m;
      perform rowlock.note_each('prioritize', v_done, p_actor, p_reason, jsonb_build_object('priority', p_priority),
        p_queues => v_queues);
      v_said := v_said || rowlock.said(v_done, 'prioritized');
      v_left := rowlock.unsaid(v_left, v_said);
    end if;
    v_said := v_said || rowlock.refusals('prioritize', v_left, p_filter);
    v_left := rowlock.unsaid(v_left, v_said);
    exit when v_left = '{}';
    perform pg_sleep(0.002 * v_round);
  end loop;
  return query select a.id, a.answer, a.detail from rowlock.answers(p_ids, v_said) as a;
end
$rowlock$;
