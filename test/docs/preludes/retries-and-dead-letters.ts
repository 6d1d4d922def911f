// An ERP that knows one invoice no more, has locked another, and is broken for a third.

export class ErpError extends Error {
  override name = 'ErpError'
  readonly retryAfterMs = 0

  constructor({ status }: { status: number }) {
    super(`the ERP said ${status}`)
  }
}

let broken = 503

export const erp = {
  async put(path: string): Promise<{ status: number }> {
    if (path.endsWith('missing')) return { status: 404 }
    if (path.endsWith('locked')) return { status: 423 }
    return { status: broken }
  },
  mend(): void {
    broken = 200
  },
}
