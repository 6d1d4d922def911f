// What a network does: refuses, resets, swallows, is slow, tears messages, loses the answer of a write.

import type { Context, Nemesis } from '../context.ts'
import type { PostgresProxy } from '../proxy.ts'
import type { Dice } from '../random.ts'

const way = ({ proxies }: Context, dice: Dice): [string, PostgresProxy] =>
  dice.chance(0.7) ? ['workers', proxies.workers] : ['producers', proxies.producers]
const heal = async ({ proxies }: Context) => {
  await Promise.all([proxies.workers.calm(), proxies.producers.calm()])
}

/** The port is closed for a while; what is open is broken too, or goes on. */
const refuse: Nemesis = {
  name: 'refuse',
  async inflict(context, dice) {
    const [whose, proxy] = way(context, dice)
    const ms = Math.round(dice.between(100, 1.5 * context.leaseMs))
    const breaks = dice.chance(0.5)
    await proxy.set('refuse')
    if (breaks) proxy.reset()
    await context.pause(ms)
    await proxy.set('pass')
    return `${whose} for ${ms} ms${breaks ? ', all links broken' : ''}`
  },
  heal,
}

const reset: Nemesis = {
  name: 'reset',
  async inflict(context, dice) {
    const [whose, proxy] = way(context, dice)
    proxy.reset()
    return whose
  },
}

/** Nothing comes through and nothing says so; then all of it flows, or the links break. */
const swallow: Nemesis = {
  name: 'swallow',
  async inflict(context, dice) {
    const [whose, proxy] = way(context, dice)
    const ms = Math.round(dice.between(100, 2 * context.leaseMs))
    const only = dice.pick([undefined, 'rowlock heartbeat', 'rowlock listen', 'rowlock worker'])
    const breaks = dice.chance(0.5)
    if (only === undefined) await proxy.set('blackhole')
    else proxy.hold(only)
    await context.pause(ms)
    if (breaks) proxy.reset()
    if (only === undefined) await proxy.set('pass')
    else proxy.hold(undefined)
    return `${whose} (${only ?? 'all'}) for ${ms} ms${breaks ? ', then broken' : ''}`
  },
  heal,
}

const delay: Nemesis = {
  name: 'delay',
  async inflict(context, dice) {
    const [whose, proxy] = way(context, dice)
    const ms = Math.round(dice.between(5, 0.4 * context.leaseMs))
    const forMs = Math.round(dice.between(200, 2_000))
    proxy.delay(ms)
    await context.pause(forMs)
    proxy.delay(0)
    return `${whose} by ${ms} ms for ${forMs} ms`
  },
  heal,
}

const tear: Nemesis = {
  name: 'tear',
  async inflict(context, dice) {
    const [whose, proxy] = way(context, dice)
    const to = dice.pick(['server', 'client'] as const)!
    const silently = dice.chance(0.3)
    void proxy.cutMessage(to, { silently })
    return `the next message of the ${whose} to the ${to}${silently ? ', silently' : ''}`
  },
  heal,
}

/** The server has done it, and the client never hears. */
const unknown: Nemesis = {
  name: 'unknown',
  weight: 2,
  async inflict(context, dice) {
    const [whose, proxy] = way(context, dice)
    const verbs =
      whose === 'workers'
        ? ['claim', 'finish', 'heartbeat', 'register', 'start', 'complete_in_transaction', 'reap', 'commit']
        : ['store', 'cancel', 'retry', 'commit']
    const verb = dice.pick(verbs)!
    const silently = dice.chance(0.2)
    void proxy.cutAnswer(new RegExp(verb === 'commit' ? '^commit' : `"${verb}"`), { silently })
    return `the answer of ${verb} to the ${whose}${silently ? ', silently' : ''}`
  },
  heal,
}

export const network: readonly Nemesis[] = [refuse, reset, swallow, delay, tear, unknown]
