// `rowlock/embedded`: a real PostgreSQL below a folder, for development, demos and tests. Not for production.

export type { EmbeddedOptions, EmbeddedServer } from './options.ts'
export type { SettingValue } from './setting.ts'
export { startEmbedded } from './start.ts'
