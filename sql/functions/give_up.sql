-- What ended jobs leave behind: the requests to cancel them, their dedupe keys (unless kept until an instant), and
-- large inputs that no history keeps. Internal: each verb that ends jobs calls it after it has their rows.
-- Order: keys in their own order. Why last: a committed key is removed by nobody but the verb that ends its job, and
-- that verb holds the job's row; so nobody can hold the key and wait for the row.
create or replace function rowlock.give_up(
  p_ids bigint[], p_queues text[], p_keys text[], p_holders bigint[], p_large bigint[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $rowlock$
begin
  if exists (select from rowlock.cancel_request) then
    delete from rowlock.cancel_request c where c.job_id = any (p_ids);
  end if;
  if p_keys is not null then
    delete from rowlock.dedupe d
     using (select k.queue, k.key, k.job_id
              from unnest(p_queues, p_keys, p_holders) as k (queue, key, job_id)
             order by k.queue, k.key) as k
     where d.queue = k.queue and d.key = k.key and d.job_id = k.job_id and d.until is null;
  end if;
  if p_large is not null then
    delete from rowlock.payload p where p.job_id = any (p_large);
  end if;
end
$rowlock$;
