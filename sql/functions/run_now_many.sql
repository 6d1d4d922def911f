-- Make scheduled and retryable jobs due at once, as `run_now` makes one, in rounds with fresh looks.
--
-- p_filter: only jobs that it finds when their row is locked.
-- p_wait: wait for a row that others have locked, instead of passing it by; for one id only.
-- Returns: a row for each id, in order: `due`, also where it was so, `not_found`, `wrong_state` with its state, `busy`
--   when it kept moving, `changed` when p_filter does not find it any more. Each that was changed has a row in audit:
--   one that is due is left as it is.
-- Transaction: may run in the caller's (READ COMMITTED). Locks: rows in waiting (skip locked).
-- Errors: RL001, RL030.
create or replace function rowlock.run_now_many(
  p_ids bigint[], p_actor text default null, p_reason text default null, p_filter jsonb default null,
  p_wait boolean default false)
returns table (id bigint, answer text, detail jsonb)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $rowlock$
declare
  v_now timestamptz := rowlock.now();
  v_rounds integer := case when p_wait then 20 else 10 end;
  v_left bigint[] := rowlock.check_many('run_now', p_ids, p_filter, p_wait);
  v_said jsonb := '{}';
  v_tids tid[];
  v_fit bigint[];
  v_done bigint[];
  v_in text[];
  v_at jsonb;
  v_queues text[] := '{}';
begin
  for v_round in 1 .. v_rounds loop
    v_tids := rowlock.lock_waiting(v_left, p_wait);
    if v_tids <> '{}' then
      v_fit := rowlock.fits(v_left, p_filter);
      v_fit := array(select w.id from rowlock.waiting w where w.ctid = any (v_tids) and w.id = any (v_fit));
      with moved as (
        update rowlock.waiting w
           set available_at = v_now
         where w.ctid = any (v_tids) and w.id = any (v_fit) and w.available_at > v_now
        returning w.id, w.queue
      )
      select coalesce(array_agg(m.id order by m.id), '{}'), coalesce(array_agg(distinct m.queue), '{}'),
             jsonb_object_agg(m.id, m.queue)
        into v_done, v_in, v_at
        from moved m;
      perform rowlock.note_each('run_now', v_done, p_actor, p_reason, p_queues => v_at);
      v_said := v_said || rowlock.said(v_fit, 'due');
      v_left := rowlock.unsaid(v_left, v_said);
      v_queues := v_queues || v_in;
    end if;
    v_said := v_said || rowlock.refusals('run_now', v_left, p_filter);
    v_left := rowlock.unsaid(v_left, v_said);
    exit when v_left = '{}';
    perform pg_sleep(0.002 * v_round);
  end loop;
  if v_queues <> '{}' then
    perform rowlock.wake(v_queues, v_now);
  end if;
  return query select a.id, a.answer, a.detail from rowlock.answers(p_ids, v_said) as a;
end
$rowlock$;
