-- Say that an import has come to the end of its file: from now on its key enqueues nothing more.
--
-- p_lines, p_digest: where the caller stands. Returns: the import, with "accepted": false when it stands elsewhere or
--   has ended before; then nothing has changed.
-- Locks: the import.
-- Errors: RL080 when the digest differs, RL081.
create or replace function rowlock.end_import(p_key text, p_lines bigint, p_digest text) returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $rowlock$
declare
  v_import rowlock.import%rowtype;
begin
  perform rowlock.require_read_committed('end_import');
  select i.* into v_import from rowlock.import i where i.key = p_key for update;
  if not found then
    perform rowlock.refuse('RL081', format('no import has the key %s', coalesce(p_key, 'null')), '{"path": "key"}');
  elsif v_import.ended_at is not null or v_import.lines is distinct from p_lines then
    return to_jsonb(v_import) || '{"accepted": false}';
  elsif v_import.digest is distinct from p_digest then
    perform rowlock.refuse('RL080',
      format('the first %s lines are not those that were imported under the key %s', p_lines, p_key),
      '{"path": "key"}');
  end if;
  update rowlock.import i
     set ended_at = rowlock.now(), beat_at = rowlock.now()
   where i.key = p_key
  returning i.* into v_import;
  return to_jsonb(v_import) || '{"accepted": true}';
end
$rowlock$;
