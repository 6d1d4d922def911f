-- Begin an import, or find the one that was begun: the enqueue of a file in steps, under a key.
--
-- p_key names the import: the same file again under it goes on where it stopped. p_digest is the digest of no line at
--   all; each step says the next one. What it is made of is the caller's business, as long as it is always the same.
--   A key is forgotten 90 days after its import ended or took its last step: then it begins anew.
-- Returns: the import: {"key", "lines", "jobs", "digest", "actor", "started_at", "beat_at", "ended_at"}. `lines` have
--   been read and committed, `jobs` were made of them; `ended_at` is null while it may go on.
-- Transaction: a short one of its own: two that begin at once wait for each other. Locks: the import.
-- Errors: RL001, RL030.
create or replace function rowlock.begin_import(p_key text, p_digest text, p_actor text default null) returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $rowlock$
declare
  v_now timestamptz := rowlock.now();
  v_import rowlock.import%rowtype;
begin
  perform rowlock.require_read_committed('begin_import');
  if p_key is null or octet_length(p_key) not between 1 and 512 then
    perform rowlock.refuse('RL001', 'key must have 1 to 512 bytes', '{"path": "key"}');
  elsif p_key ~ '[[:cntrl:]]' or not rowlock.is_trimmed(p_key) then
    perform rowlock.refuse('RL001', 'key must have no control characters and no blanks at its ends',
      '{"path": "key"}');
  elsif p_digest is null then
    perform rowlock.refuse('RL001', 'digest is missing', '{"path": "digest"}');
  end if;
  insert into rowlock.import (key, digest, actor, started_at, beat_at)
  values (p_key, p_digest, left(p_actor, 200), v_now, v_now)
  on conflict (key) do nothing;
  select i.* into strict v_import from rowlock.import i where i.key = p_key;
  return to_jsonb(v_import);
end
$rowlock$;
