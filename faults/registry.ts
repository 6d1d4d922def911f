// Every kind of fault that is known from other queues, with the test that tries it here, or why there is none.
// test/faults/registry.test.ts holds it to the list of ids and to the tests that are there.

import type { Case } from './registry/case.ts'
import { CLAIMS } from './registry/claims.ts'
import { CONNECTIONS } from './registry/connections.ts'
import { DATA } from './registry/data.ts'
import { FAILOVER } from './registry/failover.ts'
import { KEYS } from './registry/keys.ts'
import { OPERATING } from './registry/operating.ts'
import { OWNERSHIP } from './registry/ownership.ts'
import { PROCESS } from './registry/process.ts'
import { SCHEMA } from './registry/schema.ts'
import { TIME } from './registry/time.ts'

/** In the order of their ids. */
export const REGISTRY: readonly Case[] = [
  ...OWNERSHIP,
  ...DATA,
  ...CLAIMS,
  ...CONNECTIONS,
  ...FAILOVER,
  ...SCHEMA,
  ...KEYS,
  ...TIME,
  ...PROCESS,
  ...OPERATING,
]
