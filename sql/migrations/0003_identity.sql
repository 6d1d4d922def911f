-- Migration 0003: rows of history can be deleted, by a purge, where all tables are published for logical replication.
--
-- breaking: no
-- locks: each day of history and attempts, one after the other, until it commits
-- takes: moments: only the catalogue changes
-- old workers: may go on; a day that one of them has just made may have to be set by hand

-- History has no primary key: nothing but a purge ever deletes a row of it, and nothing changes one. `make_days` gives
-- the same to each new day. It costs nothing but where logical decoding is on, and there only for rows that are purged.
do $rowlock$
declare
  v_day regclass;
begin
  for v_day in
    select i.inhrelid::regclass from pg_inherits i
     where i.inhparent in ('rowlock.finished'::regclass, 'rowlock.attempt'::regclass)
     order by i.inhrelid
  loop
    execute format('alter table %s replica identity full', v_day);
  end loop;
end
$rowlock$;
