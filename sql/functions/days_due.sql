-- The days of history and attempts that are older than their class keeps them, oldest first, for the maintenance loop
-- to detach and drop; `detached` are those whose drop was interrupted.
create or replace function rowlock.days_due(p_limit integer default 100)
returns table (parent text, day text, detached boolean)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $rowlock$
  select t.parent, c.relname::text, coalesce(i.inhdetachpending, true)
    from pg_class c
    join pg_namespace n on n.oid = c.relnamespace and n.nspname = rowlock.schema_name()
   cross join lateral (
          select m[1] as parent, m[2]::integer as class, to_date(m[3], 'YYYYMMDD') as day
            from regexp_matches(c.relname, '^(finished|attempt)_([0-9]+)_([0-9]{8})$') as m) as t
    left join pg_inherits i on i.inhrelid = c.oid
   where c.relkind = 'r'
     -- The last moment of the day must be older than the class.
     and (t.day + 1 + t.class)::timestamp at time zone 'UTC' <= rowlock.now()
   order by t.day, c.relname
   limit p_limit
$rowlock$;
