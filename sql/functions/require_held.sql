-- Refuse to end a job in a transaction that is not the one which began to hold it: the handler ended that itself.
--
-- Internal. Transaction: the handler's. `hold` leaves the claim in a setting that ends with its transaction.
-- Errors: RL020.
create or replace function rowlock.require_held(p_claim_id uuid) returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $rowlock$
begin
  if current_setting('rowlock_held.claim', true) is distinct from p_claim_id::text then
    perform rowlock.refuse('RL020',
      'the transaction of this handler was ended by a statement of its own: its worker commits');
  end if;
end
$rowlock$;
