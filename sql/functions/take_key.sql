-- Take a dedupe key for a job that becomes live again. Internal.
-- Locks: the key. Errors: RL011, RL013 with the holder.
create or replace function rowlock.take_key(p_queue text, p_key text, p_id bigint) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $rowlock$
declare
  v_holder bigint;
begin
  for v_round in 1 .. 10 loop
    insert into rowlock.dedupe (queue, key, job_id) values (p_queue, p_key, p_id) on conflict (queue, key) do nothing;
    select d.job_id into v_holder from rowlock.dedupe d where d.queue = p_queue and d.key = p_key;
    if v_holder = p_id then
      return;
    elsif v_holder is not null then
      perform rowlock.refuse('RL013', format('the dedupe key of job %s is held by job %s', p_id, v_holder),
        jsonb_build_object('holder', v_holder::text));
    end if;
  end loop;
  perform rowlock.refuse('RL011', 'the dedupe key changes hands too fast');
end
$rowlock$;
