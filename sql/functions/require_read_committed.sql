-- Verbs that look twice need a fresh snapshot for the second look; a stricter isolation has only one. Internal.
-- Errors: RL030.
create or replace function rowlock.require_read_committed(p_verb text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $rowlock$
begin
  if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
    perform rowlock.refuse('RL030', format(
      '%s needs READ COMMITTED; this transaction is %s', p_verb, upper(current_setting('transaction_isolation'))));
  end if;
end
$rowlock$;
