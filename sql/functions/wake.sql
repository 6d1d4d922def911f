-- Wake the workers that sleep on these queues beyond p_at. Called after the insert, in a later statement: a sleeper
-- raised its flag before its last look, so either it saw the job or we see the flag. Under a stricter isolation
-- flags raised since the snapshot are unseen, so everyone is told.
-- Internal.
-- Price: a NOTIFY holds a lock of the whole cluster until its commit is durable; without a sleeper there is none.
create or replace function rowlock.wake(p_queues text[], p_at timestamptz) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $rowlock$
declare
  v_strict boolean := current_setting('transaction_isolation') not in ('read committed', 'read uncommitted');
  v_now timestamptz;
  v_queue text;
begin
  if not v_strict and not exists (select from rowlock.sleeper s where s.queue = any (p_queues) and s.until > p_at) then
    return;
  end if;
  v_now := rowlock.now();
  for v_queue in
    select distinct q.queue
      from unnest(p_queues) as q (queue)
     where v_strict
        or exists (
             select from rowlock.sleeper s
               join rowlock.worker w on w.id = s.worker_id and w.expires_at > v_now
              where s.queue = q.queue and s.until > p_at)
  loop
    perform pg_notify(rowlock.channel(), 'queue ' || v_queue);
  end loop;
end
$rowlock$;
