// What the compiler knows of the testing kit. Checked by `npm run types`.

import { expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import { defineJob, handle } from '../../src/index.ts'
import { type RunJobResult, runJob } from '../../src/testing/index.ts'

const mail = defineJob('mail', {
  input: z.object({ to: z.string() }),
  result: z.object({ messageId: z.string() }),
})
const send = handle(mail, () => ({ messageId: 'x' }))

test('the result of runJob is that of the job, once its outcome is known', async () => {
  const ran = await runJob(send, { to: 'ada' })
  expectTypeOf(ran).toEqualTypeOf<RunJobResult<{ messageId: string }>>()
  if (ran.outcome === 'done') expectTypeOf(ran.result).toEqualTypeOf<{ messageId: string }>()
  if (ran.outcome === 'failed') expectTypeOf(ran.cause).toEqualTypeOf<string>()
  if (ran.outcome === 'snoozed') expectTypeOf(ran.delayMs).toEqualTypeOf<number>()
  // @ts-expect-error a result is there only when it is done
  void ran.result
})

test('runJob takes the input of the job', () => {
  // @ts-expect-error a number is no address
  void runJob(send, { to: 5 }).catch(() => {})
})
