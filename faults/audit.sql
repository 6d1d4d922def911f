-- What is written down while things break. For tests only: each trigger here doubles the cost of a row.
--
-- faults.audit: every change of a job's row, in an order that is right for each job, since it is taken under the
--   row's lock. Between jobs the order means nothing.
-- faults.lease: every change of a worker's lease.
-- faults.ledger: what handlers say they did, through a connection of their own.
-- faults.session: the server's process of a transactional handler, by its own word.
-- faults.refusal: rows say on which table the next changes are refused, and how; see faults.refuse.

create schema faults;

create table faults.audit (
  seq bigint not null generated always as identity,
  phase text not null,
  op text not null,
  job_id bigint not null,
  state text not null,
  attempt integer not null,
  failures integer not null,
  max_attempts integer not null,
  claim_id uuid,
  worker_id uuid,
  claimed_at timestamptz,
  in_transaction boolean not null default false,
  queue text not null,
  kind text not null,
  dedupe_key text,
  -- Of what leaves `running`: was the session of its handler's transaction there? Null: there was none.
  session_lives boolean,
  txid text not null default pg_current_xact_id()::text,
  at timestamptz not null default clock_timestamp(),
  constraint audit_pkey primary key (seq)
);

create table faults.lease (
  seq bigint not null generated always as identity,
  op text not null,
  worker_id uuid not null,
  pid integer,
  expires_at timestamptz not null,
  at timestamptz not null default clock_timestamp(),
  constraint lease_pkey primary key (seq)
);

-- `run` counts the calls of handlers in one process: two of one attempt are told apart.
create table faults.ledger (
  seq bigint not null generated always as identity,
  job_id bigint not null,
  attempt integer not null,
  key text not null,
  pid integer not null,
  run integer not null,
  phase text not null,
  how text,
  at timestamptz not null default clock_timestamp(),
  constraint ledger_pkey primary key (seq),
  constraint ledger_once unique (job_id, attempt, pid, run, phase)
);

create table faults.session (
  job_id bigint not null,
  attempt integer not null,
  pid integer not null,
  constraint session_pkey primary key (job_id, attempt)
);

create table faults.refusal (
  phase text not null,
  sqlstate text not null,
  upto bigint not null,
  constraint refusal_pkey primary key (phase)
);
-- Sequences survive the rollback of what is refused.
create sequence faults.refused;

-- Business rows: `asked` beside enqueues in one transaction, `booked` by transactional handlers.
create table faults.asked (ref text not null, constraint asked_pkey primary key (ref));
create table faults.booked (job_id bigint not null, attempt integer not null);

-- Looked up here, and not by the verb that is judged.
create function faults.session_lives(p_row jsonb) returns boolean
language sql set search_path = pg_catalog, pg_temp as $faults$
  select exists (
           select from pg_stat_get_activity(t.pid) as a
             join pg_database d on d.oid = a.datid
            where d.datname = current_database())
    from (select coalesce(
            (select s.pid from faults.session s
              where s.job_id = (p_row ->> 'id')::bigint and s.attempt = (p_row ->> 'attempt')::integer),
            (p_row ->> 'session_pid')::integer) as pid) as t
   where t.pid is not null
$faults$;

create function faults.note() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $faults$
declare
  v_row jsonb := to_jsonb(case when tg_op = 'DELETE' then old else new end);
begin
  insert into faults.audit (
    phase, op, job_id, state, attempt, failures, max_attempts, claim_id, worker_id, claimed_at, in_transaction, queue,
    kind, dedupe_key, session_lives)
  values (
    tg_argv[0], lower(tg_op), (v_row ->> 'id')::bigint,
    case tg_argv[0]
      when 'waiting' then case when v_row ->> 'cause' is null then 'queued' else 'retryable' end
      when 'finished' then v_row ->> 'state'
      else tg_argv[0]
    end,
    (v_row ->> 'attempt')::integer, (v_row ->> 'failures')::integer,
    coalesce((v_row ->> 'max_attempts')::integer, 10), (v_row ->> 'claim_id')::uuid, (v_row ->> 'worker_id')::uuid,
    (v_row ->> 'claimed_at')::timestamptz, coalesce((v_row ->> 'in_transaction')::boolean, false), v_row ->> 'queue',
    v_row ->> 'kind', v_row ->> 'dedupe_key',
    case when tg_argv[0] = 'running' and tg_op = 'DELETE' and (v_row ->> 'in_transaction')::boolean
         then faults.session_lives(v_row) end);
  return null;
end
$faults$;

create function faults.note_lease() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $faults$
declare
  v_row rowlock.worker := case when tg_op = 'DELETE' then old else new end;
begin
  insert into faults.lease (op, worker_id, pid, expires_at)
  values (lower(tg_op), v_row.id, (v_row.facts ->> 'pid')::integer, v_row.expires_at);
  return null;
end
$faults$;

-- Refuse the next changes of a table with the SQLSTATE that faults.refusal names, as often as it says.
create function faults.refuse() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $faults$
declare
  v_refusal record;
begin
  select r.sqlstate, r.upto into v_refusal from faults.refusal r where r.phase = tg_argv[0];
  if found and nextval('faults.refused') <= v_refusal.upto then
    raise exception 'refused on purpose' using errcode = v_refusal.sqlstate;
  end if;
  return case when tg_op = 'DELETE' then old else new end;
end
$faults$;

create trigger faults_note after insert or update or delete on rowlock.waiting
  for each row execute function faults.note('waiting');
create trigger faults_note after insert or update or delete on rowlock.running
  for each row execute function faults.note('running');
create trigger faults_note after insert or update or delete on rowlock.finished
  for each row execute function faults.note('finished');
create trigger faults_note after insert or update or delete on rowlock.dead_letter
  for each row execute function faults.note('dead_letter');
create trigger faults_note_lease after insert or update or delete on rowlock.worker
  for each row execute function faults.note_lease();

create trigger faults_refuse before insert or update or delete on rowlock.waiting
  for each row execute function faults.refuse('waiting');
create trigger faults_refuse before insert or update or delete on rowlock.running
  for each row execute function faults.refuse('running');
create trigger faults_refuse before insert or update or delete on rowlock.finished
  for each row execute function faults.refuse('finished');
create trigger faults_refuse before insert or update or delete on rowlock.dead_letter
  for each row execute function faults.refuse('dead_letter');
create trigger faults_refuse before insert or update or delete on rowlock.worker
  for each row execute function faults.refuse('worker');
create trigger faults_refuse before insert or update or delete on rowlock.dedupe
  for each row execute function faults.refuse('dedupe');
create trigger faults_refuse before insert or update or delete on rowlock.attempt
  for each row execute function faults.refuse('attempt');
