-- Make this transaction's commit wait for the disk, whatever the role or the database is set to: a claim that a crash
-- of the server takes back has two owners, and an enqueue that was acknowledged must be there. Internal.
create or replace function rowlock.commit_durably() returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $rowlock$
begin
  if current_setting('synchronous_commit') = 'off' then
    perform set_config('synchronous_commit', 'on', true);
  end if;
end
$rowlock$;
