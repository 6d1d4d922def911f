-- Migration 0006: which session runs the transaction of a handler.
--
-- breaking: no
-- locks: running, against readers and writers, until it commits: every claim and finish writes it
-- takes: moments: only the catalogue changes. It waits 100 ms for the lock, then lets them pass and tries again
-- old workers: may go on; their transactional jobs are judged by the lock on their row alone, as before

-- While this waits, claims and finishes wait behind it.
set local lock_timeout = '100ms';

-- The process id of the server's end of the session. Null: no transaction, or a worker that does not tell.
alter table rowlock.running add column session_pid integer;

set local lock_timeout = '2s';
