-- Why no worker may take jobs of a kind in a queue: none serves the queue, none handles the kind, or all are draining.
-- Internal: a part of why.
create or replace function rowlock.why_unserved(p_queue text, p_kind text, p_now timestamptz)
returns table (reason text, says text, since timestamptz, until timestamptz, detail jsonb)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $rowlock$
declare
  v_crew jsonb;
  v_names text[];
begin
  select jsonb_agg(to_jsonb(c) order by c.name) into v_crew from rowlock.crew(p_queue, p_kind, p_now) as c;
  if v_crew is null then
    select coalesce(array_agg(distinct k.queue), '{}') into v_names
      from rowlock.worker w
     cross join lateral jsonb_object_keys(
             case when jsonb_typeof(w.queues) = 'object' then w.queues else '{}' end) as k (queue)
     where w.expires_at > p_now;
    reason := 'no_worker';
    says := format('no living worker serves queue %s%s Start a worker with that queue, or enqueue where one is',
      p_queue,
      case when v_names = '{}' then '; no worker lives at all.'
           else format('; served are: %s%s', rowlock.say_names(v_names),
             coalesce(nullif(rowlock.did_you_mean(p_queue, v_names), ''), '.')) end);
    detail := jsonb_build_object('queue', p_queue, 'served', v_names[1:100]);
    return next;
  elsif not v_crew @> '[{"handles": true}]' then
    select coalesce(array_agg(distinct k.kind), '{}') into v_names
      from rowlock.worker w cross join lateral unnest(w.kinds) as k (kind)
     where w.expires_at > p_now and w.queues ? p_queue;
    reason := 'no_handler';
    says := format('queue %s is served by %s worker(s), and none handles kind %s; they handle: %s%s Deploy a worker '
      'with a handler for it', p_queue, jsonb_array_length(v_crew), p_kind, rowlock.say_names(v_names),
      coalesce(nullif(rowlock.did_you_mean(p_kind, v_names), ''), '.'));
    detail := jsonb_build_object('queue', p_queue, 'kind', p_kind, 'handled', v_names[1:100]);
    return next;
  elsif not v_crew @> '[{"handles": true, "draining": false}]' then
    v_names := array(select c ->> 'name' from jsonb_array_elements(v_crew) as c where (c ->> 'handles')::boolean);
    reason := 'workers_draining';
    says := format('every worker that handles it is draining, and takes nothing more: %s. Start another one',
      rowlock.say_names(v_names));
    detail := jsonb_build_object('workers', (
      select jsonb_agg(c - 'handles') from jsonb_array_elements(v_crew) as c where (c ->> 'handles')::boolean));
    return next;
  end if;
end
$rowlock$;
