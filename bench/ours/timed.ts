// A contender of bench/peers whose claims are timed, by `pg` as it sends them: `timed.ts?peer=graphile`.

import pg from 'pg'
import type { Peer } from '../peers/shape.ts'

/** What claims look like, ours and theirs. */
const CLAIM = /"claim"\(|skip locked/i

const name = new URL(import.meta.url).searchParams.get('peer')
const ending = new URL(import.meta.url).pathname.slice(-3)
const { peer: own } = (await import(new URL(`../peers/${name}${ending}`, import.meta.url).href)) as {
  peer: Peer & { starts?(): [number, number][] }
}

let tookMs: number[] = []
const send = pg.Client.prototype.query as (...args: unknown[]) => unknown
pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]) {
  const [first] = args
  const text = typeof first === 'string' ? first : ((first as { text?: string } | undefined)?.text ?? '')
  const answer = send.apply(this, args)
  if (!CLAIM.test(text)) return answer
  const began = performance.now()
  const note = () => void tookMs.push(performance.now() - began)
  if (answer instanceof Promise) answer.then(note, () => {})
  return answer
} as never

/** The contender, and its claims since they were last asked for. Unit: ms, to the answer. */
export const peer = Object.assign(Object.create(own), {
  configuration: own.configuration,
  claims(): number[] {
    const taken = tookMs
    tookMs = []
    return taken
  },
})
