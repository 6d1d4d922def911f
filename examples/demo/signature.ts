// How the shop signs what it sends to the ERP, and how the ERP checks it.

import { createHmac, timingSafeEqual } from 'node:crypto'

/** The signature of a body under its idempotency key. */
export function sign(secret: string, key: string, body: string): string {
  return `sha256=${createHmac('sha256', secret).update(`${key}.${body}`).digest('hex')}`
}

/** Is this the signature of that body? */
export function isSigned(secret: string, key: string, body: string, signature: string): boolean {
  const wanted = Buffer.from(sign(secret, key, body))
  const given = Buffer.from(signature)
  return wanted.length === given.length && timingSafeEqual(wanted, given)
}
