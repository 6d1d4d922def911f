-- One step of an import: put these jobs in and move the cursor behind their lines, both or neither.
--
-- p_after, p_digest: the line the import stands at, and the digest so far. p_jobs: as enqueue_many takes them.
--   p_lines, p_next_digest: the line and the digest after this step. p_keyed, p_large: as store takes them, from the
--   client, which has checked the jobs; null: they are checked here.
-- Returns: the import as it stands now, as begin_import does, with "accepted", "existing": how many were not created
--   because a live job has their dedupe key, and "dropped": how many because their queue is full. Not accepted: the
--   import stands elsewhere, since another process goes on with it or has ended it, or since this step was committed
--   and its answer lost; then nothing has changed.
-- Order: the import, then as enqueue_many. Two processes with one key wait for each other here.
-- Errors: RL080 when the digest differs: what was read so far is not what is read now. RL081. RL001, RL003,
--   RL018 with index.
create or replace function rowlock.import_jobs(
  p_key text, p_after bigint, p_digest text, p_jobs jsonb, p_lines bigint, p_next_digest text,
  p_keyed boolean default null, p_large boolean default null) returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $rowlock$
declare
  v_import rowlock.import%rowtype;
  v_reply json;
  v_existing integer;
  v_dropped integer;
begin
  perform rowlock.require_read_committed('import_jobs');
  if p_next_digest is null or p_after is null or p_lines is null or p_lines < p_after then
    perform rowlock.refuse('RL001', 'lines must not go back, and the next digest must be given', '{"path": "lines"}');
  end if;
  select i.* into v_import from rowlock.import i where i.key = p_key for update;
  if not found then
    perform rowlock.refuse('RL081', format('no import has the key %s', coalesce(p_key, 'null')), '{"path": "key"}');
  elsif v_import.ended_at is not null or v_import.lines <> p_after then
    return to_jsonb(v_import) || '{"accepted": false, "existing": 0, "dropped": 0}';
  elsif v_import.digest is distinct from p_digest then
    perform rowlock.refuse('RL080',
      format('the first %s lines are not those that were imported under the key %s', p_after, p_key),
      '{"path": "key"}');
  end if;
  if p_keyed is null or p_large is null then
    v_reply := rowlock.enqueue_many(p_jobs);
  else
    v_reply := rowlock.store(p_jobs, p_keyed, p_large);
  end if;
  v_dropped := coalesce(json_array_length(v_reply -> 'dropped'), 0);
  v_existing := json_array_length(v_reply -> 'existing') - v_dropped;
  update rowlock.import i
     set lines = p_lines,
         jobs = i.jobs + json_array_length(v_reply -> 'ids') - v_existing - v_dropped,
         digest = p_next_digest,
         beat_at = rowlock.now()
   where i.key = p_key
  returning i.* into v_import;
  return to_jsonb(v_import) || jsonb_build_object(
    'accepted', true, 'existing', v_existing, 'dropped', v_dropped);
end
$rowlock$;
