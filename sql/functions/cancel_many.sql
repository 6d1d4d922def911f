-- Stop jobs for good, as `cancel` stops one: those that wait at once, those that run by asking. In rounds with fresh
-- looks, since jobs move: what a claim holds in the moment of a round is met in the next, where it runs.
--
-- p_filter: only jobs that it finds when their row is locked, or when they have been asked.
-- p_wait: wait for a row that others have locked, instead of passing it by; for one id only.
-- Returns: a row for each id, in order: `cancelled`, `requested`, `already_ended`, `not_found`, `busy` when it kept
--   moving, `changed` when p_filter does not find it any more. Each that was changed has a row in audit.
-- Transaction: may run in the caller's (READ COMMITTED). Locks: rows in waiting (skip locked); then their dedupe keys;
--   then requests in id order, all in one statement, so that two who ask wait for each other in one direction only.
-- Errors: RL001, RL030.
create or replace function rowlock.cancel_many(
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
  v_actor text := left(p_actor, 200);
  v_reason text := left(p_reason, 1000);
  v_rounds integer := case when p_wait then 20 else 10 end;
  v_left bigint[] := rowlock.check_many('cancel', p_ids, p_filter, p_wait);
  v_said jsonb := '{}';
  v_tids tid[];
  v_fit bigint[];
  v_done bigint[];
  v_running bigint[];
  v_asked bigint[];
  v_new bigint[] := '{}';
  v_workers uuid[];
  v_queues jsonb;
begin
  for v_round in 1 .. v_rounds loop
    v_tids := rowlock.lock_waiting(v_left, p_wait);
    if v_tids <> '{}' then
      v_fit := rowlock.fits(v_left, p_filter);
      v_queues := (
        select jsonb_object_agg(w.id, w.queue)
          from rowlock.waiting w
         where w.ctid = any (v_tids) and w.id = any (v_fit));
      v_done := rowlock.end_waiting(
        array(select w.ctid from rowlock.waiting w where w.ctid = any (v_tids) and w.id = any (v_fit)),
        v_actor, v_reason, v_now);
      perform rowlock.note_each('cancel', v_done, p_actor, p_reason, p_queues => v_queues);
      v_said := v_said || rowlock.said(v_done, 'cancelled');
      v_left := rowlock.unsaid(v_left, v_said);
    end if;
    v_said := v_said || rowlock.refusals('cancel', v_left, p_filter);
    v_left := rowlock.unsaid(v_left, v_said);
    exit when v_left = '{}';

    -- Asked once in a call: when all that is left runs, or when half of the rounds are over.
    if v_asked is null then
      v_running := array(select r.id from rowlock.running r where r.id = any (v_left) order by r.id);
      if v_running = v_left or v_round * 2 >= v_rounds then
        v_asked := v_running;
        with made as (
          insert into rowlock.cancel_request as c (job_id, requested_at, actor, reason)
          select a.id, v_now, v_actor, v_reason from unnest(v_asked) as a (id) order by a.id
              on conflict (job_id) do nothing
          returning c.job_id
        )
        select coalesce(array_agg(m.job_id), '{}') into v_new from made m;
      end if;
    end if;
    if v_asked is not null then
      -- They may have moved on since: only a job that still runs has been asked.
      -- A move after this look finds the request.
      select array_agg(r.id order by r.id), array_agg(distinct r.worker_id), jsonb_object_agg(r.id, r.queue)
        into v_done, v_workers, v_queues
        from rowlock.running r
       where r.id = any (v_left) and r.id = any (v_asked)
         and r.id = any ((select rowlock.fits(v_left, p_filter))::bigint[]);
      if v_done is not null then
        perform rowlock.note_each('cancel', v_done, p_actor, p_reason, p_queues => v_queues);
        perform pg_notify(rowlock.channel(), 'cancel ' || w.id) from unnest(v_workers) as w (id);
        v_said := v_said || rowlock.said(v_done, 'requested');
        v_left := rowlock.unsaid(v_left, v_said);
        exit when v_left = '{}';
      end if;
    end if;
    perform pg_sleep(0.002 * v_round);
  end loop;
  if v_new <> '{}' then
    -- Of ours, and nobody has seen them: what was asked and then ended by itself, or was not to be cancelled.
    delete from rowlock.cancel_request c
     where c.job_id = any (v_new) and (v_said -> c.job_id::text ->> 0) is distinct from 'requested';
  end if;
  return query select a.id, a.answer, a.detail from rowlock.answers(p_ids, v_said) as a;
end
$rowlock$;
