-- Migration 0004: how many jobs of a queue each worker runs at once.
--
-- breaking: no
-- locks: queue, against readers and writers, until it commits: every claim reads it
-- takes: moments: only the catalogue changes. It waits 100 ms for the lock, then lets claims pass and tries again
-- old workers: may go on; they do not follow a queue's concurrency

-- While this waits, claims wait behind it.
set local lock_timeout = '100ms';

-- How many handlers of this queue each worker runs at once. Null: as the worker was started with.
alter table rowlock.queue
  add column concurrency integer,
  add constraint queue_concurrency_in_range check (concurrency between 1 and 1000);

set local lock_timeout = '2s';
