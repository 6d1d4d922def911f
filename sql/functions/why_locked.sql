-- Who has the row of a job that waits: a reason a transaction. Internal: a part of why.
create or replace function rowlock.why_locked(p_id bigint, p_now timestamptz)
returns table (reason text, says text, since timestamptz, until timestamptz, detail jsonb)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $rowlock$
declare
  v_row record;
begin
  select w.xmax as locked_by, w.xmin as written_by, w.tableoid as relation into v_row
    from rowlock.waiting w where w.id = p_id;
  if pg_current_xact_id_if_assigned() is not null
     and exists (select from rowlock.row_holders(v_row.written_by, v_row.relation) as h where h.is_self) then
    return query
      select 'row_locked', 'the transaction that asks has put it in or changed it: nobody else sees that before it '
             'commits', null::timestamptz, null::timestamptz,
             jsonb_build_object('pid', pg_backend_pid(), 'is_self', true);
  else
    return query
      select 'row_locked', rowlock.say_holder(to_jsonb(h), h.since, p_now), h.since, null::timestamptz,
             jsonb_strip_nulls(to_jsonb(h))
        from rowlock.row_holders(v_row.locked_by, v_row.relation) as h;
  end if;
end
$rowlock$;
