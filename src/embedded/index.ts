// `rowlock/embedded`: a real PostgreSQL below a folder, for development, demos and tests. Not for production.

export type { EmbeddedOptions, EmbeddedServer, SettingValue } from './options.ts'
export { startEmbedded } from './start.ts'
