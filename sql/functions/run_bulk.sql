-- One step of a bulk change: the next jobs that its filter finds, in the order of their ids, each looked at again under
-- its lock. What it changed, how far it came and the counts commit together, so that a step that was interrupted has
-- not happened, and none happens twice. When the last id has been seen, the jobs that were busy are tried once more,
-- and, where the verb is of waiting jobs and the filter names no other state, those that ran when their turn came: they
-- may have gone back to wait. One that runs then too, or has ended, was none of its jobs and is not counted. At most
-- 10,000 are remembered, since they stand in one row: the others are counted in `refused`, as `busy` or `running`.
--
-- p_limit: jobs of this step, 1 to 1000.
-- Returns: the bulk change, and the answers of this step: {…, "answers": [[id, answer, detail], …]}. One that has ended
--   is returned as it is. `outcome` null: call again.
-- Transaction: may run in the caller's (READ COMMITTED), which then holds what the verb locks. Locks: the row of the
--   bulk change, so that of two processes one does a step after the other; then what the verb locks.
-- Errors: RL001, RL014, RL030.
create or replace function rowlock.run_bulk(p_id bigint, p_limit integer default 500) returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $rowlock$
declare
  v_now timestamptz := rowlock.now();
  v_room integer := 10000;
  v_bulk rowlock.bulk;
  v_ids bigint[];
  v_ran bigint[] := '{}';
  v_beyond integer := 0;
  v_to bigint;
  v_answers jsonb;
  v_changed integer;
  v_busy bigint[];
  v_refused jsonb;
  v_done boolean;
begin
  perform rowlock.require_read_committed('run_bulk');
  if p_limit is null or p_limit not between 1 and 1000 then
    perform rowlock.refuse('RL001', 'limit must be from 1 to 1000', '{"path": "limit"}');
  end if;
  select b.* into v_bulk from rowlock.bulk b where b.id = p_id for update;
  if not found then
    perform rowlock.refuse('RL014', format('no bulk change has the id %s', p_id));
  end if;
  if v_bulk.ended_at is not null then
    return rowlock.bulk_json(v_bulk) || '{"answers": []}';
  end if;

  if v_bulk.after_id < v_bulk.upto_id then
    -- One statement, so one snapshot: a job that moves is in the one look or in the other.
    select s.ids, least(coalesce(s.searched_to, v_bulk.upto_id), t.searched_to),
           array(select -r.id from unnest(t.ids) as r (id))
      into v_ids, v_to, v_ran
      from rowlock.search(v_bulk.filter, p_from => v_bulk.after_id, p_to => v_bulk.upto_id,
             p_newest_first => false, p_limit => p_limit) as s
      left join lateral (
             select r.ids, r.searched_to
               from rowlock.search(v_bulk.filter || '{"state": "running"}', p_from => v_bulk.after_id,
                      p_to => coalesce(s.searched_to, v_bulk.upto_id), p_newest_first => false, p_limit => v_room) as r
              where v_bulk.verb in ('run_now', 'prioritize')
                and (rowlock.texts(v_bulk.filter -> 'state') @> rowlock.verb_states(v_bulk.verb)
                  or rowlock.texts(v_bulk.filter -> 'state') @> rowlock.bulk_states(v_bulk.verb))) as t on true;
    v_ids := array(select i.id from unnest(v_ids) as i (id) where i.id <= v_to order by i.id);
  else
    v_ran := array(select a.id from unnest(v_bulk.again [: p_limit]) as a (id) where a.id < 0);
    v_ids := array(select abs(a.id) from unnest(v_bulk.again [: p_limit]) as a (id));
    v_bulk.again := v_bulk.again [p_limit + 1 :];
    v_to := null;
  end if;

  select coalesce(jsonb_agg(jsonb_build_array(a.id::text, a.answer, a.detail) order by a.n), '[]')
    into v_answers
    from rowlock.do_many(v_bulk.verb, v_ids, v_bulk.args, v_bulk.actor, v_bulk.reason, v_bulk.filter)
           with ordinality as a (id, answer, detail, n);
  v_room := case when v_to is null then 0 else greatest(v_room - cardinality(v_bulk.again), 0) end;
  v_busy := array(
    select (e.answer ->> 0)::bigint
      from jsonb_array_elements(v_answers) with ordinality as e (answer, n)
     where e.answer ->> 1 = 'busy'
     order by e.n
     limit v_room);
  v_room := v_room - cardinality(v_busy);
  if v_to is not null then
    v_beyond := greatest(cardinality(v_ran) - v_room, 0);
  end if;
  select count(*) filter (where rowlock.is_change(e.answer ->> 1)) into v_changed
    from jsonb_array_elements(v_answers) as e (answer);
  select coalesce(jsonb_object_agg(r.answer, r.jobs), '{}')
    into v_refused
    from (select c.answer, sum(c.jobs) as jobs
            from (select e.answer ->> 1, 1
                    from jsonb_array_elements(v_answers) as e (answer)
                   where not rowlock.is_change(e.answer ->> 1) and (e.answer ->> 0)::bigint <> all (v_busy)
                     and not (e.answer ->> 1 in ('changed', 'not_found') and -(e.answer ->> 0)::bigint = any (v_ran))
                   union all
                  select 'running', v_beyond where v_beyond > 0
                   union all
                  select k.key, k.value::bigint from jsonb_each_text(v_bulk.refused) as k) as c (answer, jobs)
           group by c.answer) as r;
  v_bulk.again := v_bulk.again || v_busy || v_ran [: v_room];
  v_done := coalesce(v_to, v_bulk.upto_id) >= v_bulk.upto_id and v_bulk.again = '{}';

  update rowlock.bulk b
     set after_id = coalesce(v_to, b.after_id),
         changed = b.changed + v_changed,
         refused = v_refused,
         again = v_bulk.again,
         beat_at = v_now,
         ended_at = case when v_done then v_now end,
         outcome = case when v_done then 'done' end
   where b.id = p_id
  returning b.* into v_bulk;
  return rowlock.bulk_json(v_bulk) || jsonb_build_object('answers', v_answers);
end
$rowlock$;
