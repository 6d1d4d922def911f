-- Make the days of history and attempts from p_from (default: today) on, p_days of them,
-- for each retention class in use.
--
-- Returns: how many were made.
-- Locks: an advisory lock of the transaction; attach does not stop writers, `partition of` would.
create or replace function rowlock.make_days(p_from timestamptz default null, p_days integer default 15)
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set datestyle = 'ISO, YMD'
as $rowlock$
declare
  v_schema text := rowlock.schema_name();
  v_made integer := 0;
  v_class smallint;
  v_day date;
  v_table text;
  v_name text;
begin
  perform pg_advisory_xact_lock(rowlock.lock_key('days'));
  for v_table, v_class, v_day, v_name in
    select t.parent, t.class, t.day, t.name
      from rowlock.day_tables(coalesce(p_from, rowlock.now()), p_days) as t
     order by t.day, t.name
  loop
    continue when exists (
      select from pg_class c join pg_namespace n on n.oid = c.relnamespace
        join pg_inherits i on i.inhrelid = c.oid
       where n.nspname = v_schema and c.relname = v_name);
    execute format('create table if not exists %I.%I (like %I.%I including defaults including constraints)',
      v_schema, v_name, v_schema, v_table);
    -- It has no key; where all tables are published, a purge could not delete from it.
    execute format('alter table %I.%I replica identity full', v_schema, v_name);
    execute format('alter table %I.%I attach partition %I.%I for values from (%s, %L) to (%s, %L)',
      v_schema, v_table, v_schema, v_name,
      v_class, to_char(v_day, 'YYYY-MM-DD') || ' 00:00:00+00',
      v_class, to_char(v_day + 1, 'YYYY-MM-DD') || ' 00:00:00+00');
    v_made := v_made + 1;
  end loop;
  return v_made;
end
$rowlock$;
