-- How long, in words for people: 250 ms, 12 s, 5 min, 3 h 20 min, 2 days 4 h. Internal.
create or replace function rowlock.say_length(p_length interval) returns text
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $rowlock$
  select case
           when l.s < 1 then format('%s ms', round(greatest(l.s, 0) * 1000))
           when l.s < 60 then format('%s s', trunc(l.s))
           when l.s < 3600 then format('%s min', trunc(l.s / 60))
           when l.s < 172800 then concat_ws(' ', format('%s h', trunc(l.s / 3600)),
             case when trunc(l.s / 60)::bigint % 60 > 0 then format('%s min', trunc(l.s / 60)::bigint % 60) end)
           else concat_ws(' ', format('%s days', trunc(l.s / 86400)),
             case when trunc(l.s / 3600)::bigint % 24 > 0 then format('%s h', trunc(l.s / 3600)::bigint % 24) end)
         end
    from (select extract(epoch from p_length)::numeric as s) as l
$rowlock$;
