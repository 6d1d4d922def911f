-- Lock a waiting job for an operator's verb, or say why that cannot be. Jobs move: the verb looks again and again,
-- with short pauses, until one look finds the job still. Internal.
-- Locks: the row in waiting.
-- Errors: RL010 no such job, RL011 it kept moving, RL012 it is in another state.
create or replace function rowlock.find_waiting(p_id bigint, p_verb text) returns tid
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $rowlock$
declare
  v_tid tid;
  v_state text;
begin
  perform rowlock.require_read_committed(p_verb);
  for v_round in 1 .. 20 loop
    select w.ctid into v_tid from rowlock.waiting w where w.id = p_id for update;
    if found then
      return v_tid;
    end if;
    v_state := rowlock.state_of(p_id);
    if v_state not in ('queued', 'retryable') then
      perform rowlock.refuse('RL012', format('%s does not apply: job %s is %s', p_verb, p_id, v_state),
        jsonb_build_object('state', v_state));
    end if;
    perform pg_sleep(0.002 * v_round);
  end loop;
  perform rowlock.refuse('RL011', format('job %s kept moving', p_id));
end
$rowlock$;
