// Sends one e-mail. SMTP knows no idempotency key, so the key becomes the Message-ID, by which mail systems recognise
// a message they already have: a worker that dies between the send and its completion sends the same message again.

import { createTransport } from 'nodemailer'
import { handle, permanent } from 'rowlock'
import { sendEmail } from '../jobs.ts'

type Order = { readonly reference: string; readonly voucher?: string }

const TEMPLATES: Readonly<Record<string, (order: Order) => string>> = {
  confirmation: ({ reference }) => `Thank you. Your order ${reference} is on its way.`,
  // Poison: nobody ever sets the voucher, so this template fails each time it is filled in.
  voucher: ({ voucher }) => `Your voucher is ${voucher!.toUpperCase()}.`,
}

export function emailHandler(smtpPort: number) {
  const transport = createTransport({
    host: '127.0.0.1',
    port: smtpPort,
    ignoreTLS: true,
    connectionTimeout: 5_000,
    socketTimeout: 10_000,
  })
  return handle(sendEmail, async ({ input, idempotencyKey }) => {
    const { reference, to, template } = input
    const text = TEMPLATES[template]?.({ reference })
    if (text === undefined) throw permanent(new Error(`there is no template ${template}`))
    const messageId = `<${idempotencyKey.replaceAll(':', '.')}@shop.example>`
    try {
      await transport.sendMail({
        from: 'shop@shop.example',
        to,
        subject: `Your order ${reference}`,
        text,
        messageId,
        headers: { 'X-Reference': reference },
      })
    } catch (error) {
      const { responseCode } = error as { responseCode?: number }
      if (responseCode === undefined) throw error
      const refusal = Object.assign(error as Error, { code: `smtp_${responseCode}` })
      throw responseCode >= 500 ? permanent(refusal) : refusal
    }
    return { messageId }
  })
}
