// Every fault there is.

import type { Nemesis } from '../context.ts'
import { block } from './block.ts'
import { bulks } from './bulk.ts'
import { deploy } from './deploy.ts'
import { freeze } from './freeze.ts'
import { kill } from './kill.ts'
import { locks } from './locks.ts'
import { network } from './network.ts'
import { operator } from './operator.ts'
import { refusal } from './refusal.ts'
import { restart } from './restart.ts'
import { skew } from './skew.ts'
import { terminate } from './terminate.ts'

export const NEMESES: readonly Nemesis[] = [
  kill,
  freeze,
  block,
  deploy,
  skew,
  terminate,
  ...network,
  ...locks,
  refusal,
  restart,
  ...operator,
  ...bulks,
]
