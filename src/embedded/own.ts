// Hands a tree of files over to the account that PostgreSQL runs as.

import { lchownSync, lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Account } from './account.ts'

/** Give a cluster that root owns (it was copied or restored) to the account; links are not followed. */
export function ownTree(path: string, account: Account): void {
  if (lstatSync(path).uid === account.uid) return
  give(path, account)
}

function give(path: string, account: Account): void {
  // Children first: the tree counts as given when its top is.
  if (lstatSync(path).isDirectory()) for (const name of readdirSync(path)) give(join(path, name), account)
  lchownSync(path, account.uid, account.gid)
}
