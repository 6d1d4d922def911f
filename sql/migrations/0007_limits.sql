-- Migration 0007: limits of a queue: how many of its jobs run at once, how many start in a time, how many wait.
--
-- breaking: no
-- locks: queue and running, against readers and writers, until it commits: every claim and finish needs them
-- takes: moments: only the catalogue changes, and an index that is empty. It waits 100 ms for each lock, then lets them
--   pass and tries again
-- old workers: may go on, and are held to the limits; what they prefetch of a limited queue counts as running

-- While this waits, claims and finishes wait behind it.
set local lock_timeout = '100ms';

-- Null: no limit. `rate_starts` starts in each `rate_per`, at most `rate_burst` of them at once.
alter table rowlock.queue
  add column max_running integer,
  add column rate_starts integer,
  add column rate_per interval,
  add column rate_burst integer,
  add column max_waiting bigint,
  add column when_full text,
  add constraint queue_max_running_in_range check (max_running between 1 and 100000),
  add constraint queue_rate_is_whole check (num_nonnulls(rate_starts, rate_per, rate_burst) in (0, 3)),
  add constraint queue_rate_starts_in_range check (rate_starts between 1 and 100000),
  add constraint queue_rate_per_in_range check (rate_per between interval '1 ms' and interval '30 days'),
  add constraint queue_rate_burst_in_range check (rate_burst between 1 and 100000),
  add constraint queue_max_waiting_in_range check (max_waiting between 1 and 1000000000),
  add constraint queue_when_full_known check (when_full in ('refuse', 'drop')),
  add constraint queue_when_full_of_a_bound check (when_full is null or max_waiting is not null);

-- Of jobs that were claimed under a limit on running ones: the number of their claim. Numbers of one queue rise, for
-- they are drawn under the lock of its throttle.
alter table rowlock.running add column limit_no bigint;
create sequence rowlock.limit_no as bigint;
create index running_limited on rowlock.running (queue, limit_no) where limit_no is not null;

-- What a claim of a limited queue locks, so that one after the other counts and takes. A row for each queue that ever
-- had a limit on running jobs or a rate. A row fills a page: it is written often, and its dead versions go at once.
create table rowlock.throttle (
  queue text not null,
  -- Nothing of the queue runs under a lower number.
  floor bigint not null default 0,
  -- Until all that runs has a number, and every claim that may not know of the limit is over, all is counted. Of such
  -- claims none is of a transaction from `mark` on.
  is_settled boolean not null default false,
  mark xid8,
  -- Some worker found the limit on running jobs reached, with jobs that were due.
  is_awaited boolean not null default false,
  -- By when the starts so far are paid for by the rate.
  paid_at timestamptz not null default '-infinity',
  constraint throttle_pkey primary key (queue)
) with (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- Queues with a bound on what waits, found at once: an enqueue looks whether there are any.
create index queue_bounded on rowlock.queue (name) where max_waiting is not null;

-- How many jobs waited in such a queue, counted up to `most`, when `at_id` was the last id that was given out. Rows are
-- added, never changed: a count in a transaction that stays open is in nobody's way. Unlogged: what is lost is counted
-- again.
create unlogged table rowlock.queue_length (
  no bigint not null generated always as identity,
  counted_at timestamptz not null,
  took_ms double precision not null,
  waiting bigint not null,
  most bigint not null,
  at_id bigint not null,
  queue text not null,
  constraint queue_length_pkey primary key (queue, no)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

set local lock_timeout = '2s';
