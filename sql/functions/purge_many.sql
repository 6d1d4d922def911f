-- Delete ended jobs for good, as `purge` deletes one: out of history, with their attempts and inputs. What was done,
-- by whom and why, stays in audit.
--
-- p_filter: only jobs that it finds when their row is locked.
-- p_wait: wait for a row that others have locked, instead of passing it by; for one id only.
-- Returns: a row for each id, in order: `purged`, `not_found`, `wrong_state` with its state, `busy` while somebody else
--   has it locked, `changed` when p_filter does not find it any more. Each that was changed has a row in audit.
-- Transaction: may run in the caller's (READ COMMITTED). Locks: rows in finished, then in payload (skip locked).
-- Errors: RL001, RL030.
create or replace function rowlock.purge_many(
  p_ids bigint[], p_actor text default null, p_reason text default null, p_filter jsonb default null,
  p_wait boolean default false)
returns table (id bigint, answer text, detail jsonb)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $rowlock$
declare
  v_rounds integer := case when p_wait then 20 else 10 end;
  v_left bigint[] := rowlock.check_many('purge', p_ids, p_filter, p_wait);
  v_said jsonb := '{}';
  v_locked bigint[];
  v_bodies bigint[];
  v_done bigint[];
  v_queues jsonb;
begin
  for v_round in 1 .. v_rounds loop
    if p_wait then
      v_locked := array(select f.id from rowlock.finished f where f.id = any (v_left) order by f.id for update);
    else
      v_locked := array(
        select f.id from rowlock.finished f where f.id = any (v_left) order by f.id for update skip locked);
    end if;
    if v_locked <> '{}' then
      -- An input that is being deleted with its day is left to that: the job stays until it is gone.
      v_bodies := array(
        select p.job_id from rowlock.payload p where p.job_id = any (v_locked) order by p.job_id
           for update skip locked);
      v_locked := array(
        select f.id from unnest(rowlock.fits(v_locked, p_filter)) as f (id)
         where f.id = any (v_bodies) or not exists (select from rowlock.payload p where p.job_id = f.id));
      with gone as (
        delete from rowlock.finished f where f.id = any (v_locked) returning f.id, f.queue
      )
      select coalesce(array_agg(distinct g.id), '{}'), jsonb_object_agg(g.id, g.queue)
        into v_done, v_queues
        from gone g;
      delete from rowlock.payload p where p.job_id = any (v_done);
      delete from rowlock.attempt a where a.job_id = any (v_done);
      perform rowlock.note_each('purge', v_done, p_actor, p_reason, p_queues => v_queues);
      v_said := v_said || rowlock.said(v_done, 'purged');
      v_left := rowlock.unsaid(v_left, v_said);
    end if;
    v_said := v_said || rowlock.refusals('purge', v_left, p_filter);
    v_left := rowlock.unsaid(v_left, v_said);
    exit when v_left = '{}';
    perform pg_sleep(0.002 * v_round);
  end loop;
  return query select a.id, a.answer, a.detail from rowlock.answers(p_ids, v_said) as a;
end
$rowlock$;
