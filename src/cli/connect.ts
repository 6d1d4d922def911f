// The database that a command talks to.

import { Database } from '../engine/database.ts'
import { RowlockError } from '../ground/errors.ts'

/** Errors: INVALID_OPTION when neither `--url` nor DATABASE_URL is given, or it is no address of PostgreSQL. */
export function connect(url: string | undefined, schema: string): Database {
  const connectionString = url ?? process.env.DATABASE_URL
  if (!connectionString) {
    throw new RowlockError('INVALID_OPTION', 'which database? Give --url, or set DATABASE_URL.', {
      path: 'url',
    })
  }
  if (!/^postgres(ql)?:\/\//.test(connectionString)) {
    throw new RowlockError('INVALID_OPTION', 'the url must begin with postgres://', { path: 'url' })
  }
  return new Database({ connectionString, schema, maxConnections: 2, applicationName: 'rowlock cli' })
}
