-- Run ended jobs again, as `retry` runs one: a new job for each, with the same input and settings, which names the old
-- one as `retried_from`. History does not move, so nothing is locked: a job that is purged at the same time is retried
-- whole or not at all.
--
-- p_filter: only jobs that it finds in the look that copies them.
-- p_wait: wait for a key that others have in hand to the end; for one id only.
-- Returns: a row for each id, in order: `retried` with the `new_job_id`, `not_found`, `wrong_state` with its state,
--   `dedupe_key_taken` with the `holder` (of two with one key in one call the first by id has it), `busy` when its key
--   changed hands too fast, is in hand of an open transaction, or was taken for another of this call that came to
--   nothing, `changed` when p_filter does not find it. Each that was retried has a row in audit.
-- Transaction: may run in the caller's (READ COMMITTED). Locks: the dedupe keys, which it takes in their order and once
--   in a call. A key that somebody takes or gives up is waited for 200 ms, by p_wait to the end.
-- Errors: RL001, RL030.
create or replace function rowlock.retry_many(
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
  v_left bigint[] := rowlock.check_many('retry', p_ids, p_filter, p_wait);
  v_said jsonb := '{}';
  v_fit bigint[];
  v_keyed bigint[];
  v_of text[];
  v_keys text[];
  v_news bigint[];
  v_holders bigint[];
  v_mine jsonb := '{}';
  v_made jsonb;
  v_in text[];
  v_at jsonb;
  v_queues text[] := '{}';
begin
  perform rowlock.commit_durably();
  for v_round in 1 .. 10 loop
    if v_mine = '{}' then
      v_fit := rowlock.fits(v_left, p_filter);
      select array_agg(o.id order by o.id), array_agg(o.queue order by o.id), array_agg(o.dedupe_key order by o.id),
             array_agg(nextval('rowlock.job_id') order by o.id)
        into v_keyed, v_of, v_keys, v_news
        from (select f.id, f.queue, f.dedupe_key
                from rowlock.finished f
               where f.id = any (v_left) and f.id = any (v_fit) and f.dedupe_key is not null
               order by f.id) as o;
      if v_keyed is not null then
        if p_wait then
          v_holders := rowlock.win_keys(v_of, v_keys, v_news);
        else
          v_holders := rowlock.win_free_keys(v_of, v_keys, v_news);
        end if;
        v_mine := (
          select coalesce(jsonb_object_agg(k.id, k.new_id::text), '{}')
            from unnest(v_keyed, v_news, v_holders) as k (id, new_id, holder)
           where k.holder = k.new_id);
        -- One whose key this call took for another waits to see whether that one becomes a job.
        v_said := v_said || rowlock.key_taken(
          v_keyed, v_holders, array(select m.value::bigint from jsonb_each_text(v_mine) as m));
        if not p_wait then
          v_said := v_said || rowlock.said(array(
            select k.id from unnest(v_keyed, v_holders) as k (id, holder) where k.holder is null), 'busy');
        end if;
        v_left := rowlock.unsaid(v_left, v_said);
      end if;
    end if;

    -- The jobs, their inputs and whether they fit, in one look.
    with old as materialized (
      select o.*, coalesce((v_mine ->> o.id::text)::bigint, nextval('rowlock.job_id')) as new_id
        from (select f.id, f.timeout, f.priority, f.max_attempts, f.queue, f.kind, f.tenant_id, f.dedupe_key,
                     f.idempotency_key, f.backoff, f.metadata, f.input, p.body
                from rowlock.finished f
                left join rowlock.payload p on p.job_id = f.id and f.input is null
               where f.id = any (v_left) and f.id = any ((select rowlock.fits(v_left, p_filter))::bigint[])
                 and (f.dedupe_key is null or v_mine ? f.id::text)
                 and (f.input is not null or p.body is not null)
               order by f.id) as o
    ), bodies as (
      insert into rowlock.payload (job_id, body) select o.new_id, o.body from old o where o.input is null
    ), made as (
      insert into rowlock.waiting as w (
        id, available_at, enqueued_at, retried_from, timeout, priority, max_attempts, queue, kind, tenant_id,
        dedupe_key, idempotency_key, backoff, metadata, input)
      select o.new_id, v_now, v_now, o.id, o.timeout, o.priority, o.max_attempts, o.queue, o.kind, o.tenant_id,
             o.dedupe_key, o.idempotency_key, o.backoff, o.metadata, o.input
        from old o
      returning w.id, w.retried_from, w.queue
    )
    select coalesce(jsonb_object_agg(m.retried_from, jsonb_build_object('new_job_id', m.id::text)), '{}'),
           coalesce(array_agg(distinct m.queue), '{}'), jsonb_object_agg(m.retried_from, m.queue)
      into v_made, v_in, v_at
      from made m;
    if v_made <> '{}' then
      perform rowlock.note_each('retry', array(select k::bigint from jsonb_object_keys(v_made) as k), p_actor, p_reason,
        p_details => v_made, p_queues => v_at);
      v_said := v_said || (
        select jsonb_object_agg(m.key, jsonb_build_array('retried', m.value)) from jsonb_each(v_made) as m);
      v_left := rowlock.unsaid(v_left, v_said);
      v_queues := v_queues || v_in;
    end if;
    v_said := v_said || rowlock.refusals('retry', v_left, p_filter);
    -- Large inputs go a moment before the day of their jobs: what is left of such a job cannot be run again.
    v_said := v_said || (
      select coalesce(jsonb_object_agg(f.id, '["not_found", null]'::jsonb), '{}')
        from rowlock.finished f
       where f.id = any (v_left) and f.input is null
         and not exists (select from rowlock.payload p where p.job_id = f.id));
    v_left := rowlock.unsaid(v_left, v_said);
    exit when v_left = '{}';
    -- The others' keys are held by those of this call that became jobs, or were taken for those that did not.
    v_said := v_said || rowlock.key_taken(
      array(select k.id from unnest(v_keyed, v_holders) as k (id, holder) where k.id = any (v_left) order by k.id),
      array(select k.holder from unnest(v_keyed, v_holders) as k (id, holder) where k.id = any (v_left) order by k.id),
      array(
        select m.value::bigint
          from jsonb_each_text(v_mine) as m
         where v_said -> m.key ->> 0 is distinct from 'retried'));
    v_left := rowlock.unsaid(v_left, v_said);
    exit when v_left = '{}';
    perform pg_sleep(0.002 * v_round);
  end loop;

  -- Keys of ours whose jobs could not be run again.
  delete from rowlock.dedupe d
   using unnest(v_of, v_keys, v_news, v_keyed) as k (queue, key, new_id, id)
   where d.queue = k.queue and d.key = k.key and d.job_id = k.new_id
     and v_said -> k.id::text ->> 0 is distinct from 'retried';
  if v_queues <> '{}' then
    perform rowlock.wake(v_queues, v_now);
  end if;
  return query select a.id, a.answer, a.detail from rowlock.answers(p_ids, v_said) as a;
end
$rowlock$;
