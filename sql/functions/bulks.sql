-- Bulk changes, the newest first: what was asked, by whom and why, how far it came, and how it ended. `again` is how
-- many jobs are to be tried once more at the end.
--
-- p_id: only this one.
create or replace function rowlock.bulks(p_limit integer default 50, p_id bigint default null)
returns table (
  id bigint, verb text, filter jsonb, args jsonb, actor text, reason text, started_at timestamptz, beat_at timestamptz,
  ended_at timestamptz, outcome text, upto_id bigint, after_id bigint, matched bigint, about boolean, changed bigint,
  refused jsonb, again integer)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $rowlock$
  select b.id, b.verb, b.filter, b.args, b.actor, b.reason, b.started_at, b.beat_at, b.ended_at, b.outcome, b.upto_id,
         b.after_id, b.matched, b.about, b.changed, b.refused, cardinality(b.again)
    from rowlock.bulk b
   where p_id is null or b.id = p_id
   order by b.id desc
   limit least(greatest(p_limit, 1), 1000)
$rowlock$;
