// PostgreSQL refuses to run as root: which account of this machine it runs as instead.

import { readFileSync } from 'node:fs'
import { unavailable } from './failure.ts'

/** An account of the operating system. */
export interface Account {
  readonly name: string
  readonly uid: number
  readonly gid: number
}

/** Whether this process is root, and so must not run PostgreSQL itself. */
export function isRoot(): boolean {
  return process.getuid?.() === 0
}

/**
 * The account for a server that root starts: the one that owns the data already, else `postgres`, else `nobody`. It
 * must have an entry in the list of accounts: PostgreSQL looks itself up.
 *
 * Errors: EMBEDDED_UNAVAILABLE when there is none.
 */
export function findAccount(ownerUid?: number, passwd = '/etc/passwd'): Account {
  const accounts = readFileSync(passwd, 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
    .filter((fields) => fields.length >= 4 && Number(fields[2]) !== 0)
    .map(([name = '', , uid, gid]) => ({ name, uid: Number(uid), gid: Number(gid) }))
  const found =
    accounts.find((account) => account.uid === ownerUid) ??
    accounts.find((account) => account.name === 'postgres') ??
    accounts.find((account) => account.name === 'nobody')
  if (found) return found
  throw unavailable(
    'PostgreSQL does not run as root, and there is no account postgres or nobody to run it as. ' +
      'Add one (`useradd --system postgres`) or start as an ordinary user.',
  )
}

/** The part of spawn's options that makes a child run as the account. */
export function asAccount(account: Account | undefined): { uid?: number; gid?: number } {
  return account ? { uid: account.uid, gid: account.gid } : {}
}
