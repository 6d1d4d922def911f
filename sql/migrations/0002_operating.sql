-- Migration 0002: what operators need: bulk changes, imports, and an index of changes by their queue.
--
-- breaking: no
-- locks: audit, against writers, while its index is built
-- takes: moments: audit has a row for each change that somebody made by hand
-- old workers: may go on

-- One verb for all jobs that a filter finds, done in steps. Each step commits what it changed together with how far it
-- got, so that one that was interrupted can go on. Jobs above `upto_id` came later and are left alone; those up to
-- `after_id` have been seen; those in `again` were busy then (negative: running,
-- where a verb is of waiting jobs), and are tried once more at the end.
create table rowlock.bulk (
  id bigint not null generated always as identity,
  verb text not null,
  filter jsonb not null,
  args jsonb not null default '{}',
  actor text,
  reason text,
  started_at timestamptz not null,
  beat_at timestamptz not null,
  ended_at timestamptz,
  outcome text,
  upto_id bigint not null,
  after_id bigint not null default 0,
  matched bigint not null,
  about boolean not null,
  changed bigint not null default 0,
  refused jsonb not null default '{}',
  again bigint[] not null default '{}',
  constraint bulk_pkey primary key (id),
  constraint bulk_outcome_known check (outcome in ('done', 'stopped')),
  constraint bulk_ended_with_an_outcome check ((ended_at is null) = (outcome is null))
);

-- How far a file was enqueued: each step commits its jobs together with the line it reached, so that an import that
-- was interrupted goes on behind it. `digest` is of all lines so far: another file is noticed.
create table rowlock.import (
  key text not null,
  lines bigint not null default 0,
  jobs bigint not null default 0,
  digest text not null,
  actor text,
  started_at timestamptz not null,
  beat_at timestamptz not null,
  ended_at timestamptz,
  constraint import_pkey primary key (key),
  constraint import_key_fits check (octet_length(key) between 1 and 512)
);

-- What was done to a queue.
create index audit_by_queue on rowlock.audit (queue, at) where queue is not null;
