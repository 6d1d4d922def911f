-- Raise what a verb for one job is refused with, from the answer of its form for many. Internal.
-- Errors: RL010 no such job, RL011 it kept moving, RL012 it is in another state, RL013 its dedupe key is held.
create or replace function rowlock.require_changed(p_verb text, p_id bigint, p_answer text, p_detail jsonb)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $rowlock$
begin
  if p_answer = 'not_found' then
    perform rowlock.refuse('RL010', format('no job has the id %s', p_id));
  elsif p_answer = 'busy' then
    perform rowlock.refuse('RL011', format('job %s kept moving, or its dedupe key changes hands too fast', p_id));
  elsif p_answer = 'wrong_state' then
    perform rowlock.refuse('RL012', format('%s does not apply: job %s is %s', p_verb, p_id, p_detail ->> 'state'),
      p_detail);
  elsif p_answer = 'dedupe_key_taken' then
    perform rowlock.refuse('RL013',
      format('the dedupe key of job %s is held by job %s', p_id, p_detail ->> 'holder'), p_detail);
  end if;
end
$rowlock$;
