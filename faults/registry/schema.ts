// G: installing, upgrading, names, rights, and releases side by side.

import { coming, tried } from './case.ts'

const NAMES = 'engine/schema-name › a schema may be called › %s'
const INTERRUPTED =
  'engine/replace › a step outside a transaction › that was interrupted is mended by the next run, ' +
  'and an index of somebody else is left alone'

export const SCHEMA = [
  tried(
    'G01',
    'Many that start on an empty database all succeed, and each migration is applied once.',
    'engine/migrate › many at once › on an empty database all succeed, and each migration is applied once',
    'pooler/pgbouncer › through PgBouncer › eight migrate an empty database at once, round after round',
  ),
  tried(
    'G02',
    'First uses of a queue, a kind and a key meet without an error.',
    'engine/migrate › many at once › first uses of new queues, kinds and keys meet without an error',
  ),
  tried(
    'G04',
    'A migration takes its locks in short turns under live workers, and none of them sees an error.',
    'engine/migrate › a table that somebody holds is waited for, in short turns that let others pass',
    'engine/migrate › every function is replaced under the hands of workers and producers, and none of them notices',
  ),
  tried(
    'G05',
    'Indexes are built beside the work where that is needed, and what an interruption left is mended.',
    'long/upgrade › an upgrade of five million finished jobs › keeps nobody waiting for a second, and ' +
      'what an interruption leaves is mended',
    INTERRUPTED,
    'engine/replace › a step outside a transaction › whose process dies in the middle goes on with ' +
      'the next one, longer than the role may sit idle',
  ),
  coming('G06', 'From each release straight to the newest, with jobs in every state.', 'a second release'),
  tried(
    'G07',
    'A function has one signature after an upgrade, and a restored copy works.',
    'engine/replace › a function › with other arguments takes the place of the old one: one ' +
      'signature, the same callers',
    'engine/script › a copy by pg_dump works, and migrates, under its own database',
  ),
  tried(
    'G08',
    'No superuser, no extension, no right on public: what is missing is said in one error.',
    'engine/rights › a role › is enough to migrate and work when the schema was made for it',
    'engine/rights › a role › without CREATE on the database gets one clear error, and nothing is made',
  ),
  tried(
    'G10',
    'A schema of any name works, or is refused before any SQL.',
    NAMES,
    'engine/schema-name › a schema called by %s is refused before any SQL',
  ),
  tried('G11', 'The schema’s name is quoted right as an identifier, a literal and a channel.', NAMES),
  tried(
    'G13',
    'Names that differ in their last byte alone stay apart; they are data, not identifiers.',
    'faults/names-and-numbers › queues, kinds and keys that differ in their last byte alone stay apart',
    'faults/names-and-numbers › schemas whose names differ in their last byte alone are two installations',
  ),
  tried(
    'G14',
    'Something else of one of our names is no success: nothing of ours is made, and it is said.',
    'engine/replace › what is in the way › %s is MIGRATION_FAILED: it stays, and nothing of ours is made',
  ),
  tried(
    'G16',
    'With all tables published for logical replication every verb goes through, a purge as well.',
    'faults/published › every phase of a job, its retries, its dead letter and its purge go through',
  ),
  tried(
    'G17',
    'A worker takes only kinds that it handles; others wait for one that does, and are reported.',
    'engine/claim › lines › jobs of kinds and queues that were not named stay where they are',
    'engine/unhandled › a kind that no living worker handles in its queue is reported, once for all its jobs',
  ),
]
