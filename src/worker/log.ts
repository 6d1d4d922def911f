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
  return each((level) => (more, message) => log[level]({ ...fields, ...more }, message))
}

/** A logger that never throws: a full disk behind it must not stop a worker. */
export function withoutThrowing(log: Logger): Logger {
  return each((level) => (fields, message) => {
    try {
      log[level](fields, message)
    } catch {
      // there is no other place to say it
    }
  })
}

function each(write: (level: keyof Logger) => Logger['warn']): Logger {
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') }
}

/** What a line says of an error: code and message, no stack of a database that is away for an hour. Never throws. */
export function errorFields(error: unknown): { error: string; code?: string } {
  try {
    const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown }
    return { error: String(message ?? error), ...(typeof code === 'string' && { code }) }
  } catch {
    return { error: 'an error that cannot be described' }
  }
}
