-- Migration 0005: history is found by what is rare in it: what is not done, and what has a key.
--
-- breaking: no
-- transaction: no
-- locks: finished, against writers, for a moment: workers finish while the indexes of its days are built
-- takes: some seconds for each million rows of history; it waits for every transaction that is open in the database
-- old workers: may go on

-- History is read by id; these find what is rare in it. A job that is done and has no key stands in none of them.
create index concurrently if not exists finished_not_done
  on rowlock.finished (id) where state <> 'done';

create index concurrently if not exists finished_dedupe_key
  on rowlock.finished (dedupe_key, id) where dedupe_key is not null;

create index concurrently if not exists finished_idempotency_key
  on rowlock.finished (idempotency_key, id) where idempotency_key is not null;
