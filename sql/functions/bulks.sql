-- Bulk changes, the newest first: what was asked, by whom and why, how far it came, and how it ended.
--
-- p_id: only this one.
create or replace function rowlock.bulks(p_limit integer default 50, p_id bigint default null)
returns setof rowlock.bulk
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $rowlock$
  select b.*
    from rowlock.bulk b
   where p_id is null or b.id = p_id
   order by b.id desc
   limit least(greatest(p_limit, 1), 1000)
$rowlock$;
