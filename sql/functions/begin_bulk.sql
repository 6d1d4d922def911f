-- Begin to do one verb to all jobs that a filter finds: checks, counts and keeps what was asked. It changes no job:
-- `run_bulk` does, step by step.
--
-- p_verb: cancel, run_now, prioritize, redrive, discard, retry or purge. p_filter: as in `jobs`; where it names no
--   state, it is of all states that the verb applies to; run_now is of scheduled and retryable jobs. A filter that
--   leaves none of their jobs out is refused, unless it says {"all": true}. p_args: {"priority": -10 to 10} for
--   prioritize; {"anew": true}: begin although the same change, of the same filter, was begun and has not ended.
--   Without it that is refused: both would retry each job, and what was interrupted is gone on with by run_bulk.
-- Returns: the bulk change, as `bulks` shows it. Jobs that are enqueued from now on are not part of it.
-- Errors: RL001, RL016 the same has been begun, RL030.
create or replace function rowlock.begin_bulk(
  p_verb text, p_filter jsonb, p_args jsonb default '{}', p_actor text default null, p_reason text default null)
returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $rowlock$
declare
  v_verbs constant text[] := array['cancel', 'run_now', 'prioritize', 'redrive', 'discard', 'retry', 'purge'];
  v_states constant text[] := rowlock.verb_states(p_verb);
  v_own constant text[] := rowlock.bulk_states(p_verb);
  v_now timestamptz := rowlock.now();
  v_filter jsonb := coalesce(p_filter, '{}');
  v_args jsonb := coalesce(p_args, '{}');
  v_fault jsonb;
  v_known text[];
  v_asked text[];
  v_wrong text;
  v_upto bigint;
  v_count jsonb;
  v_open bigint;
  v_bulk rowlock.bulk;
begin
  perform rowlock.require_read_committed('begin_bulk');
  if v_states is null then
    perform rowlock.refuse('RL001', format('unknown verb %s%s', left(p_verb, 100),
      rowlock.did_you_mean(left(coalesce(p_verb, ''), 100), v_verbs)), '{"path": "verb"}');
  end if;
  v_fault := rowlock.filter_fault(v_filter);
  if v_fault is not null then
    perform rowlock.refuse(v_fault ->> 'sqlstate', v_fault ->> 'message',
      jsonb_build_object('path', v_fault -> 'path'));
  end if;
  v_fault := rowlock.args_fault(p_verb, v_args);
  if v_fault is not null then
    perform rowlock.refuse('RL001', v_fault ->> 'message', jsonb_build_object('path', v_fault -> 'path'));
  end if;

  -- Of two words for waiting jobs both apply where waiting jobs do.
  v_known := v_states || case when 'queued' = any (v_states) then array['scheduled', 'due'] else '{}' end;
  v_asked := rowlock.texts(v_filter -> 'state');
  select s.state into v_wrong from unnest(v_asked) as s (state) where s.state <> all (v_known) limit 1;
  if found then
    perform rowlock.refuse('RL001', format('%s does not apply to jobs that are %s: it applies to %s', p_verb, v_wrong,
      array_to_string(v_states, ', ')), '{"path": "state"}');
  end if;
  if v_filter ? 'error' and 'dead_letter' <> all (v_states) then
    perform rowlock.refuse('RL001', format('error finds dead letters, and %s does not apply to them', p_verb),
      '{"path": "error"}');
  end if;
  if v_filter - '{state,metadata}'::text[] = '{}' and coalesce(v_filter -> 'metadata', '{}') = '{}'
     and (v_asked is null or v_asked @> v_states or v_asked @> v_own) then
    perform rowlock.refuse('RL001', format(
      'this filter leaves out no job that %s applies to: say {"all": true} in it if that is meant', p_verb),
      '{"path": "all"}');
  end if;
  if v_asked is null then
    v_filter := v_filter || jsonb_build_object('state', to_jsonb(v_own));
  end if;
  select b.id
    into v_open
    from rowlock.bulk b
   where b.ended_at is null and b.verb = p_verb and b.filter = v_filter and b.args = v_args - 'anew'
   order by b.id desc
   limit 1;
  if found and not coalesce((v_args ->> 'anew')::boolean, false) then
    perform rowlock.refuse('RL016', format('the bulk change %s is the same and has not ended', v_open),
      jsonb_build_object('bulk', v_open::text));
  end if;

  -- Before the first id is given out, the sequence stands at it already.
  select case when s.is_called then s.last_value else 0 end into v_upto from rowlock.job_id as s;
  v_count := rowlock.count_jobs(v_filter);
  insert into rowlock.bulk (verb, filter, args, actor, reason, started_at, beat_at, upto_id, matched, about)
  values (p_verb, v_filter, v_args - 'anew', left(p_actor, 200), left(p_reason, 1000), v_now, v_now, v_upto,
          (v_count ->> 'count')::bigint, (v_count ->> 'about')::boolean)
  returning * into v_bulk;
  perform rowlock.note('bulk', null,
    case when jsonb_typeof(v_filter -> 'queue') = 'string' then v_filter ->> 'queue' end, p_actor, p_reason,
    jsonb_build_object('id', v_bulk.id::text, 'verb', p_verb, 'filter', v_filter, 'args', v_bulk.args,
      'matched', v_bulk.matched, 'about', v_bulk.about));
  return rowlock.bulk_json(v_bulk);
end
$rowlock$;
