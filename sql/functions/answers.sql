-- What each id of a call is answered, in the call's order; one that is there twice is answered twice alike, and one
-- for which no round found an answer was busy. Internal.
create or replace function rowlock.answers(p_ids bigint[], p_said jsonb)
returns table (id bigint, answer text, detail jsonb)
language sql immutable
set search_path = pg_catalog, pg_temp
as $rowlock$
  select g.id,
         case when g.id is null then 'not_found' else coalesce(p_said -> g.id::text ->> 0, 'busy') end,
         nullif(p_said -> g.id::text -> 1, 'null')
    from unnest(p_ids) with ordinality as g (id, n)
   order by g.n
$rowlock$;
