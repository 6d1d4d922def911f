-- Who has a job's row and what to do about it, as a sentence. Internal: `p_holder` is a row of row_holders.
create or replace function rowlock.say_holder(p_holder jsonb, p_since timestamptz, p_now timestamptz) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $rowlock$
  select case
           when (h.is_self)::boolean
             then 'the transaction that asks has its row locked: no worker gets it before that ends'
           when h.gid is not null
             then format('the prepared transaction %s of %s has its row locked since %s: commit prepared %L, or '
               'rollback prepared %L', h.gid, h.usename, rowlock.say_when(p_since, p_now), h.gid, h.gid)
           when h.pid is null
             then 'a prepared transaction has its row locked: look in pg_prepared_xacts'
           when h.application_name = 'rowlock worker' and (p_since is null or p_since > p_now - interval '10 s')
             then format('a worker has its row locked at this moment, pid %s: most likely it is being claimed', h.pid)
           else format('pid %s (%s) %s its row locked%s%s%s. End that transaction there, or: '
             'select pg_terminate_backend(%s)', h.pid,
             concat_ws(', ', h.application_name, 'user ' || h.usename),
             case when h.is_certain then 'has' else 'may be the one that has' end,
             case when p_since is not null
                  then format(', in a transaction since %s', rowlock.say_when(p_since, p_now)) else '' end,
             coalesce('; it is ' || nullif(concat_ws(' and ', h.state, h.doing), ''), ''),
             coalesce(', its last statement: ' || left(regexp_replace(h.query, '[[:space:]]+', ' ', 'g'), 200), ''),
             h.pid)
         end
    from jsonb_to_record(p_holder) as h (
           pid integer, is_self boolean, is_certain boolean, gid text, application_name text, usename text, state text,
           doing text, query text)
$rowlock$;
