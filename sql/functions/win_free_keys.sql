-- Take those of these dedupe keys that are to be had: as win_keys does, but what somebody takes or gives up in an open
-- transaction is waited for 200 ms and then left to him. Null says so, as it does for a key that changed hands too
-- fast. Internal: verbs for many jobs hold other keys and rows meanwhile, for which others wait.
--
-- Who is in the way is found by halves, with hardly a wait. Where many keys are in the way it ends early, and what it
-- has not come to is null too: another call may have it.
-- Why a lock_timeout of the function: the caller's comes back with its end, however it ends.
create or replace function rowlock.win_free_keys(p_queues text[], p_keys text[], p_ids bigint[]) returns bigint[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set lock_timeout = '200ms'
set jit = off
as $rowlock$
declare
  v_holders bigint[] := array_fill(null::bigint, array[cardinality(p_ids)]);
  v_parts integer[] := array[1, cardinality(p_ids)];
  v_from integer;
  v_to integer;
  v_in_the_way integer := 0;
begin
  while v_parts <> '{}' and v_in_the_way < 50 loop
    v_from := v_parts [1];
    v_to := v_parts [2];
    v_parts := v_parts [3 :];
    begin
      v_holders [v_from : v_to] :=
        rowlock.win_keys(p_queues [v_from : v_to], p_keys [v_from : v_to], p_ids [v_from : v_to]);
    exception when lock_not_available then
      v_in_the_way := v_in_the_way + 1;
      perform set_config('lock_timeout', '1ms', true);
      if v_from < v_to then
        v_parts := array[v_from, (v_from + v_to) / 2, (v_from + v_to) / 2 + 1, v_to] || v_parts;
      end if;
    end;
  end loop;
  return v_holders;
end
$rowlock$;
