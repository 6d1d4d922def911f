-- Put dead letters back in their queues, as `redrive` puts one: the same jobs, their failures forgotten.
--
-- p_filter: only jobs that it finds when their row is locked.
-- p_wait: wait for a row or key that others have locked, instead of passing it by; for one id only.
-- Returns: a row for each id, in order: `redriven`, `not_found`, `wrong_state` with its state, `dedupe_key_taken` with
--   the `holder` (of two with one key in one call the first by id has it), `busy` when it kept moving or when
--   an open transaction has its key in hand, `changed` when p_filter does not find it any more. Each that was changed
--   has a row in audit.
-- Transaction: may run in the caller's (READ COMMITTED). Locks: the dedupe keys, which it takes again in their order
--   and once in a call; then rows in dead_letter (skip locked). A key that somebody takes or gives up is waited for
--   200 ms, by p_wait to the end.
-- Errors: RL001, RL030.
create or replace function rowlock.redrive_many(
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
  v_left bigint[] := rowlock.check_many('redrive', p_ids, p_filter, p_wait);
  v_said jsonb := '{}';
  v_fit bigint[];
  v_keyed bigint[];
  v_of text[];
  v_keys text[];
  v_holders bigint[];
  v_mine bigint[] := '{}';
  v_done bigint[];
  v_in text[];
  v_at jsonb;
  v_queues text[] := '{}';
begin
  perform rowlock.commit_durably();
  for v_round in 1 .. v_rounds loop
    if v_mine = '{}' then
      v_fit := rowlock.fits(v_left, p_filter);
      select array_agg(d.id order by d.id), array_agg(d.queue order by d.id), array_agg(d.dedupe_key order by d.id)
        into v_keyed, v_of, v_keys
        from rowlock.dead_letter d
       where d.id = any (v_left) and d.id = any (v_fit) and d.dedupe_key is not null;
      if v_keyed is not null then
        if p_wait then
          v_holders := rowlock.win_keys(v_of, v_keys, v_keyed);
        else
          v_holders := rowlock.win_free_keys(v_of, v_keys, v_keyed);
        end if;
        v_mine := array(
          select k.id from unnest(v_keyed, v_holders) as k (id, holder) where k.holder = k.id order by k.id);
        -- One that has its key from this call waits to see whether it can be had; others hold theirs for good.
        v_said := v_said || rowlock.key_taken(v_keyed, v_holders, v_mine);
        if not p_wait then
          v_said := v_said || rowlock.said(array(
            select k.id from unnest(v_keyed, v_holders) as k (id, holder) where k.holder is null), 'busy');
        end if;
        v_left := rowlock.unsaid(v_left, v_said);
      end if;
    end if;

    v_fit := rowlock.lock_dead_letters(v_left, p_wait);
    if v_fit <> '{}' then
      v_fit := rowlock.fits(v_fit, p_filter);
      with gone as (
        delete from rowlock.dead_letter d
         where d.id = any (v_fit) and (d.dedupe_key is null or d.id = any (v_mine))
        returning d.*
      ), back as (
        insert into rowlock.waiting as w (
          id, available_at, enqueued_at, retried_from, timeout, attempt, priority, max_attempts, queue, kind,
          tenant_id, dedupe_key, idempotency_key, backoff, metadata, input)
        select g.id, v_now, g.enqueued_at, g.retried_from, g.timeout, g.attempt, g.priority, g.max_attempts, g.queue,
               g.kind, g.tenant_id, g.dedupe_key, g.idempotency_key, g.backoff, g.metadata, g.input
          from gone g
         order by g.id
        returning w.id, w.queue
      )
      select coalesce(array_agg(b.id order by b.id), '{}'), coalesce(array_agg(distinct b.queue), '{}'),
             jsonb_object_agg(b.id, b.queue)
        into v_done, v_in, v_at
        from back b;
      -- Whoever puts it back wants it to run, whatever was asked of it before.
      delete from rowlock.cancel_request c where c.job_id = any (v_done);
      perform rowlock.note_each('redrive', v_done, p_actor, p_reason, p_queues => v_at);
      v_said := v_said || rowlock.said(v_done, 'redriven');
      v_left := rowlock.unsaid(v_left, v_said);
      v_queues := v_queues || v_in;
    end if;
    v_said := v_said || rowlock.refusals('redrive', v_left, p_filter);
    v_left := rowlock.unsaid(v_left, v_said);
    exit when v_left = '{}';
    -- Only those are left whose key another of this call has, and that one has been put back.
    v_said := v_said || rowlock.key_taken(
      array(select k.id from unnest(v_keyed, v_holders) as k (id, holder) where k.id = any (v_left) order by k.id),
      array(select k.holder from unnest(v_keyed, v_holders) as k (id, holder) where k.id = any (v_left) order by k.id),
      array(select m.id from unnest(v_mine) as m (id) where v_said -> m.id::text ->> 0 is distinct from 'redriven'));
    v_left := rowlock.unsaid(v_left, v_said);
    exit when v_left = '{}';
    perform pg_sleep(0.002 * v_round);
  end loop;

  -- Keys of ours whose jobs could not be put back; a job that somebody else put back is live, and keeps its own.
  v_mine := array(
    select m.id from unnest(v_mine) as m (id) where v_said -> m.id::text ->> 0 is distinct from 'redriven');
  if v_mine <> '{}' then
    delete from rowlock.dedupe d
     using unnest(v_of, v_keys, v_keyed) as k (queue, key, id)
     where d.queue = k.queue and d.key = k.key and d.job_id = k.id and d.until is null and k.id = any (v_mine)
       and not exists (select from rowlock.waiting w where w.id = k.id)
       and not exists (select from rowlock.running r where r.id = k.id);
  end if;
  if v_queues <> '{}' then
    perform rowlock.wake(v_queues, v_now);
  end if;
  return query select a.id, a.answer, a.detail from rowlock.answers(p_ids, v_said) as a;
end
$rowlock$;
