-- The tables of history and attempts from the day of p_from on, p_days of them, for each retention class in use,
-- whether they are there or not. Internal.
create or replace function rowlock.day_tables(p_from timestamptz, p_days integer)
returns table (parent text, class smallint, day date, name text)
language sql stable
set search_path = pg_catalog, pg_temp
as $rowlock$
  select t.parent, c.class, d.day, format('%s_%s_%s', t.parent, c.class, to_char(d.day, 'YYYYMMDD'))
    from (select 7::smallint as class, true as history
           union
          -- The attempts of a queue that keeps no history are kept for a day.
          select greatest(q.retention_days, 1::smallint), q.retention_days > 0 from rowlock.queue q) as c
   cross join (select (p_from at time zone 'UTC')::date + n as day from generate_series(0, p_days - 1) as n) as d
   cross join (values ('finished', true), ('attempt', false)) as t (parent, history)
   where c.history or not t.history
   group by t.parent, c.class, d.day
$rowlock$;
