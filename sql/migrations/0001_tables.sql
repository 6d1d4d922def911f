-- Migration 0001: the tables, one for each phase of a job.
--
-- breaking: no
-- locks: nothing that exists
-- takes: moments
-- old workers: there are none

-- The id of this installation; part of every idempotency key, so that two installations never share one.
create table rowlock.installation (
  id uuid not null default gen_random_uuid(),
  created_at timestamptz not null default clock_timestamp(),
  constraint installation_pkey primary key (id)
);
insert into rowlock.installation default values;

create sequence rowlock.job_id as bigint;

-- Queued and retryable jobs. `cause` is why the last attempt failed, and null unless the job is retryable.
-- `input` is null when it lies in payload. Columns stand by width, so that no byte is padding.
create table rowlock.waiting (
  id bigint not null,
  available_at timestamptz not null,
  enqueued_at timestamptz not null,
  expires_at timestamptz,
  retried_from bigint,
  timeout interval,
  attempt integer not null default 0,
  priority smallint not null default 0,
  failures smallint not null default 0,
  losses smallint not null default 0,
  max_attempts smallint,
  queue text not null,
  kind text not null,
  tenant_id text,
  dedupe_key text,
  idempotency_key text,
  cause text,
  backoff jsonb,
  metadata jsonb,
  input jsonb,
  constraint waiting_pkey primary key (id),
  constraint waiting_queue_fits check (octet_length(queue) between 1 and 100),
  constraint waiting_kind_fits check (octet_length(kind) between 1 and 100),
  constraint waiting_priority_in_range check (priority between -10 and 10),
  constraint waiting_max_attempts_in_range check (max_attempts between 1 and 100)
) with (
  fillfactor = 100,
  autovacuum_vacuum_scale_factor = 0.01,
  autovacuum_vacuum_threshold = 2000,
  autovacuum_vacuum_insert_scale_factor = 1,
  autovacuum_vacuum_insert_threshold = 100000,
  autovacuum_vacuum_cost_delay = 0,
  autovacuum_analyze_scale_factor = 0.2,
  autovacuum_analyze_threshold = 10000
);
-- The dispatch index: the jobs of one line stand together, in the order in which they are claimed.
create index waiting_dispatch on rowlock.waiting (queue, kind, priority desc, available_at, id);
-- Jobs that were lost twice: found at once when they have waited long enough to go first.
create index waiting_suspects on rowlock.waiting (queue, available_at) where losses >= 2;
create index waiting_expiring on rowlock.waiting (expires_at) where expires_at is not null;

-- Claimed jobs. `claim_id` is the fence: every later write names it. `in_transaction` says that the handler's own
-- session holds a lock on this row for as long as it lives.
create table rowlock.running (
  id bigint not null,
  claimed_at timestamptz not null,
  started_at timestamptz,
  available_at timestamptz not null,
  enqueued_at timestamptz not null,
  expires_at timestamptz,
  retried_from bigint,
  claim_id uuid not null,
  worker_id uuid not null,
  timeout interval,
  attempt integer not null,
  priority smallint not null,
  failures smallint not null,
  losses smallint not null,
  max_attempts smallint,
  in_transaction boolean not null default false,
  queue text not null,
  kind text not null,
  tenant_id text,
  dedupe_key text,
  idempotency_key text,
  backoff jsonb,
  metadata jsonb,
  input jsonb,
  constraint running_pkey primary key (id)
) with (
  fillfactor = 90,
  autovacuum_vacuum_scale_factor = 0,
  autovacuum_vacuum_threshold = 2000,
  autovacuum_vacuum_cost_delay = 0,
  autovacuum_analyze_scale_factor = 0,
  autovacuum_analyze_threshold = 100000
);

-- Jobs that ended: done, failed, cancelled. One partition a retention class and day; whole days are dropped.
create table rowlock.finished (
  id bigint not null,
  finished_at timestamptz not null,
  claimed_at timestamptz,
  started_at timestamptz,
  available_at timestamptz not null,
  enqueued_at timestamptz not null,
  retried_from bigint,
  worker_id uuid,
  timeout interval,
  attempt integer not null,
  priority smallint not null,
  failures smallint not null,
  max_attempts smallint,
  retention_days smallint not null,
  state text not null,
  queue text not null,
  kind text not null,
  tenant_id text,
  dedupe_key text,
  idempotency_key text,
  cause text,
  actor text,
  reason text,
  backoff jsonb,
  metadata jsonb,
  input jsonb,
  result jsonb,
  constraint finished_state_is_final check (state in ('done', 'failed', 'cancelled'))
) partition by range (retention_days, finished_at);
create index finished_id on rowlock.finished (id);

-- Dead letters: failures used up max_attempts. Parked for a person, until redriven or discarded.
create table rowlock.dead_letter (
  id bigint not null,
  dead_at timestamptz not null,
  claimed_at timestamptz,
  started_at timestamptz,
  available_at timestamptz not null,
  enqueued_at timestamptz not null,
  retried_from bigint,
  worker_id uuid,
  timeout interval,
  attempt integer not null,
  priority smallint not null,
  failures smallint not null,
  losses smallint not null,
  max_attempts smallint,
  queue text not null,
  kind text not null,
  tenant_id text,
  dedupe_key text,
  idempotency_key text,
  cause text not null,
  error jsonb,
  backoff jsonb,
  metadata jsonb,
  input jsonb,
  constraint dead_letter_pkey primary key (id)
);
create index dead_letter_by_queue on rowlock.dead_letter (queue, dead_at, id);

-- One row per attempt that did not end its job well. By class and day, dropped with history.
create table rowlock.attempt (
  job_id bigint not null,
  ended_at timestamptz not null,
  claimed_at timestamptz not null,
  started_at timestamptz,
  worker_id uuid not null,
  attempt integer not null,
  retention_days smallint not null,
  outcome text not null,
  cause text,
  error jsonb,
  constraint attempt_outcome_known
    check (outcome in ('failed', 'timed_out', 'lost', 'snoozed', 'handed_back', 'cancelled'))
) partition by range (retention_days, ended_at);
create index attempt_job_id on rowlock.attempt (job_id);

-- Inputs above about 4 kB: written once, read by id, deleted before the day of their job is dropped.
create table rowlock.payload (
  job_id bigint not null,
  body jsonb not null,
  constraint payload_pkey primary key (job_id)
);

-- A dedupe key and the live job that has it. `until` keeps a key beyond the end of its job.
create table rowlock.dedupe (
  queue text not null,
  key text not null,
  job_id bigint not null,
  until timestamptz,
  constraint dedupe_pkey primary key (queue, key),
  constraint dedupe_key_fits check (octet_length(key) between 1 and 512)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
create index dedupe_kept on rowlock.dedupe (until) where until is not null;

-- Asked of running jobs; read by the heartbeat, settled by the verb that ends the attempt.
create table rowlock.cancel_request (
  job_id bigint not null,
  requested_at timestamptz not null,
  actor text,
  reason text,
  constraint cancel_request_pkey primary key (job_id)
);

-- Settings of the queues that differ from the defaults.
create table rowlock.queue (
  name text not null,
  paused_at timestamptz,
  retention_days smallint not null default 7,
  target_wait interval not null default interval '1 minute',
  constraint queue_pkey primary key (name),
  constraint queue_name_fits check (octet_length(name) between 1 and 100),
  constraint queue_retention_is_a_class check (retention_days in (0, 1, 7, 30, 90)),
  constraint queue_target_wait_in_range check (target_wait >= interval '0' and target_wait <= interval '30 days')
);

-- One row per worker process: its lease, and what it serves.
create table rowlock.worker (
  id uuid not null,
  name text not null,
  started_at timestamptz not null,
  beat_at timestamptz not null,
  expires_at timestamptz not null,
  lease interval not null,
  release text not null,
  queues jsonb not null,
  kinds text[] not null,
  facts jsonb not null default '{}',
  constraint worker_pkey primary key (id)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- Who sleeps on which queue. Unlogged: after a crash every connection is gone, and every worker looks again.
create unlogged table rowlock.sleeper (
  queue text not null,
  worker_id uuid not null,
  until timestamptz not null,
  constraint sleeper_pkey primary key (queue, worker_id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- What people did, and why.
create table rowlock.audit (
  id bigint not null generated always as identity,
  at timestamptz not null,
  verb text not null,
  job_id bigint,
  queue text,
  actor text,
  reason text,
  detail jsonb,
  constraint audit_pkey primary key (id)
);
create index audit_by_job on rowlock.audit (job_id) where job_id is not null;
create index audit_at on rowlock.audit (at);
