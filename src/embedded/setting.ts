// One setting of PostgreSQL: what it may be, and how a configuration file writes it.

import { invalid } from './failure.ts'

/** A value of postgresql.conf: numbers and booleans as they are, sizes and times as text (`'128MB'`). */
export type SettingValue = string | number | boolean

/** What keeps the server local and findable; these cannot be asked for. */
const OURS = [
  'listen_addresses',
  'port',
  'unix_socket_directories',
  'data_directory',
  'config_file',
  'hba_file',
]

/** One line of postgresql.conf. Errors: INVALID_OPTION. */
export function settingLine(name: string, value: SettingValue): string {
  const path = `settings.${name}`
  if (!/^[a-z_][a-z0-9_.]*$/i.test(name)) throw invalid(path, 'is no name of a setting')
  if (OURS.includes(name.toLowerCase())) throw invalid(path, 'belongs to the embedded server')
  if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean') {
    throw invalid(path, 'must be a text, a number or a boolean')
  }
  if (/[\0\r\n]/.test(String(value))) throw invalid(path, 'must be on one line')
  return `${name} = ${typeof value === 'boolean' ? (value ? 'on' : 'off') : quoted(String(value))}`
}

/** A text as postgresql.conf quotes it. */
export function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`
}
