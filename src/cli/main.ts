#!/usr/bin/env node
// The front door: the process of `rowlock <command>`. The commands stand in commands.ts, what runs them in program.ts.

import { processIo } from './io.ts'
import { main } from './program.ts'
import type { Shell } from './shell.ts'

let shell: Shell | undefined
// A closed pipe (`| head`) is no fault of ours.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') shell?.unread()
})
// That nobody hears of the progress is no reason to stop in the middle.
process.stderr.on('error', () => {})

process.exitCode = await main(process.argv.slice(2), processIo(), (made) => {
  shell = made
})
