// Where the database is: checked before anybody connects, and never printed with its password.

import { hostsOf } from '../engine/hosts.ts'
import { UsageError } from './exit.ts'

/** Errors: UsageError when there is none, or it is no address of PostgreSQL. */
export function addressOf(url: string | undefined): string {
  if (!url) throw new UsageError('which database? Give --url, or set DATABASE_URL.')
  if (!/^postgres(ql)?:\/\//.test(url)) throw new UsageError('the url must begin with postgres://')
  return url
}

/** The text without the passwords that these addresses hold, as they are written and as they are meant. */
export function withoutPassword(text: string, ...urls: readonly (string | undefined)[]): string {
  let clean = text
  for (const url of urls) {
    const written =
      /^\w+:\/\/[^:@/?#]*:(.+)@/.exec(url ?? '')?.[1] ?? /[?&]password=([^&#]+)/.exec(url ?? '')?.[1]
    if (!written) continue
    if (url) clean = clean.replaceAll(url, url.replace(written, '***'))
    for (const secret of [written, decoded(written)]) {
      // A password of a letter or two is no secret, and taking it out would make a riddle of the text.
      if (secret.length > 3) clean = clean.replaceAll(secret, '***')
    }
  }
  return clean
}

/** Server, or servers, database and user of an address, for messages; undefined where it cannot be read. */
export function placeOf(
  url: string | undefined,
): { server: string; database: string; user: string } | undefined {
  try {
    const hosts = hostsOf(url ?? '')
    const { host, pathname, username } = new URL(hosts?.targets[0]?.connectionString ?? url ?? '')
    const user = decoded(username)
    const server = hosts?.targets.map(({ name }) => name).join(', ') || host || 'the local server'
    return { server, database: decoded(pathname.slice(1)) || user, user }
  } catch {
    return undefined
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
