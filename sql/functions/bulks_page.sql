-- Bulk changes as JSON, the newest first, each as begin_bulk and run_bulk answer it: for programs.
--
-- p_id: only this one.
create or replace function rowlock.bulks_page(p_limit integer default 50, p_id bigint default null) returns jsonb
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $rowlock$
  select coalesce(jsonb_agg(rowlock.bulk_json(o.bulk) order by (o.bulk).id desc), '[]')
    from (select b as bulk
            from rowlock.bulk b
           where p_id is null or b.id = p_id
           order by b.id desc
           limit least(greatest(p_limit, 1), 1000)) as o
$rowlock$;
