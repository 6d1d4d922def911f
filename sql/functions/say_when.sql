-- An instant, in words for people, as the session's time zone has it: 14:02:05 UTC (12 min ago), or (in 3 h); with its
-- day where that is another one. Internal.
create or replace function rowlock.say_when(p_at timestamptz, p_now timestamptz) returns text
language sql stable parallel safe
set search_path = pg_catalog, pg_temp
as $rowlock$
  select case
           when p_at is null then 'an unknown instant'
           when not isfinite(p_at) then case when p_at > p_now then 'never' else 'the beginning of time' end
           else to_char(p_at, case when p_at::date = p_now::date then 'HH24:MI:SS TZ' else 'YYYY-MM-DD HH24:MI TZ' end)
                || case when p_at > p_now then format(' (in %s)', rowlock.say_length(p_at - p_now))
                        else format(' (%s ago)', rowlock.say_length(p_now - p_at)) end
         end
$rowlock$;
