// Where a worker writes what people should know. Any pino-like logger fits.

/** The part of a logger that is used: fields first, then a message. */
export interface Logger {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/** Warnings and errors as lines of JSON on stderr; the rest is dropped. */
export const stderrLogger: Logger = {
  debug() {},
  info() {},
  warn: (fields, message) => write('warn', fields, message),
  error: (fields, message) => write('error', fields, message),
}

function write(level: string, fields: object, message: string): void {
  process.stderr.write(`${JSON.stringify({ level, time: new Date().toISOString(), message, ...fields })}\n`)
}

/** A logger that adds these fields to every line. */
export function withFields(log: Logger, fields: object): Logger {
  const add = (level: keyof Logger) => (more: object, message: string) =>
    log[level]({ ...fields, ...more }, message)
  return { debug: add('debug'), info: add('info'), warn: add('warn'), error: add('error') }
}

/** What a line says of an error: code and message, no stack of a database that is away for an hour. */
export function errorFields(error: unknown): { error: string; code?: string } {
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown }
  return { error: String(message ?? error), ...(typeof code === 'string' && { code }) }
}
