-- The answer for each job whose dedupe key another has for good, with the holder, by id. Left out are those who have
-- their own, those whose key changed hands too fast, and those whose holder (in p_open) may yet give it back. Internal.
create or replace function rowlock.key_taken(p_ids bigint[], p_holders bigint[], p_open bigint[]) returns jsonb
language sql immutable
set search_path = pg_catalog, pg_temp
as $rowlock$
  select coalesce(jsonb_object_agg(k.id, jsonb_build_array(
           'dedupe_key_taken', jsonb_build_object('holder', k.holder::text))), '{}')
    from unnest(p_ids, p_holders) as k (id, holder)
   where k.holder is not null and k.holder <> k.id and k.holder <> all (p_open)
$rowlock$;
