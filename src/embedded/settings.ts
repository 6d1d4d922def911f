// The settings of a server: ours, the caller's, and where they are written.

import { chownSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Home } from './home.ts'
import type { CheckedOptions } from './options.ts'
import { quoted, type SettingValue, settingLine } from './setting.ts'

/**
 * Write the configuration file, in the home: it includes the cluster's own, then says what the caller wants. What
 * `alter system` stored is read after it and wins.
 */
export function writeSettings(home: Home, options: CheckedOptions): void {
  const own: Record<string, SettingValue> = options.fsync ? {} : { fsync: false }
  const lines = [
    '# Written at each start by Rowlock; change it with `alter system` or the option `settings`.',
    `include ${quoted(join(home.data, 'postgresql.conf'))}`,
    ...Object.entries({ ...own, ...options.settings }).map(([name, value]) => settingLine(name, value)),
  ]
  rmSync(home.settings, { force: true })
  writeFileSync(home.settings, `${lines.join('\n')}\n`, { mode: 0o600, flag: 'wx' })
  if (home.account) chownSync(home.settings, home.account.uid, home.account.gid)
}

/** The arguments of `postgres`: these win over every file, so the server stays on the loopback address. */
export function postgresArguments(home: Home, port: number): string[] {
  const fixed = {
    config_file: home.settings,
    listen_addresses: '127.0.0.1',
    port,
    unix_socket_directories: '',
  }
  return ['-D', home.data, ...Object.entries(fixed).flatMap(([name, value]) => ['-c', `${name}=${value}`])]
}
