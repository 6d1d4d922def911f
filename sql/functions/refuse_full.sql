-- Say that a queue is full. p_index: which of the jobs of the call finds no room, from 0. Internal.
create or replace function rowlock.refuse_full(p_queue text, p_most bigint, p_index bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $rowlock$
begin
  perform rowlock.refuse('RL018', format('queue %s is full: about %s jobs wait in it, as many as may', p_queue, p_most),
    jsonb_build_object('path', 'queue', 'index', p_index));
end
$rowlock$;
