// J: starting, stopping, signals, what stays in a process, and how the package is brought into it.

import { absent, tried } from './case.ts'

const STATES = 'worker/stop › in whatever state it is'

export const PROCESS = [
  tried(
    'J01',
    'A stop ends in time whatever state it meets, and the process then ends by itself.',
    `${STATES} › a process ends by itself (%s)`,
    `${STATES} › while it connects to a black hole`,
    `${STATES} › while the server is away (%s), with a job at work`,
  ),
  tried(
    'J02',
    'What ends during a stop while the link is down is written when it is back; without it the stop ends too.',
    'faults/dead-links › what ends during a stop while the link is down (%s) is written when it is ' +
      'back within the lease',
    'faults/dead-links › a stop whose link stays down ends all the same, and the job is left to its lease',
  ),
  tried(
    'J04',
    'After a stop not a byte is sent and no session is left.',
    'worker/stop › afterwards › no byte is sent and no session is left',
  ),
  tried(
    'J05',
    'Starts and stops in any order and at once end in what the last one says, and never hang.',
    'faults/lifecycle › starts and stops in any order, at once and again, end stopped and leave nothing',
    'worker/stop › afterwards › a start is refused',
  ),
  tried(
    'J07',
    'The first signal drains, the second aborts; signals are taken only when asked for, and given back.',
    'worker/stop › signals › the first drains, the second aborts, and the process ends by itself',
    'worker/stop › signals › are taken only when asked for, and given back',
  ),
  tried(
    'J08',
    'A stop keeps its time though handlers are deaf, and their late answers change nothing.',
    'worker/stop › draining › jobs of deaf handlers go back once, however many there are, and the worker stays fit',
    'worker/stop › draining › a second stop hurries the first',
  ),
  tried(
    'J10',
    'A process that runs another passes its signals on and outlives it; a server goes with the last that holds it.',
    'cli/dev › rowlock dev -- command › forwards signals, and waits for the command to end',
    'embedded/crash › a server is gone after the only node process that held it was killed',
  ),
  tried(
    'J11',
    'Thousands of jobs leave no listener, handle, warning or heap behind.',
    'faults/leaks › the heap, the handles and the listeners after 24,000 jobs are what they were after 4,000',
    'worker/stop › a hundred workers that start and stop leave no listener, session or row behind',
  ),
  tried(
    'J13',
    'A worker keeps its process alive; a client does not.',
    'client/life › a client › keeps no process alive: a script that enqueues and ends without close() ends by itself',
    'cli/work › rowlock work › runs what the module exports until SIGTERM, drains, and tells figures',
  ),
  tried(
    'J14',
    'A promise that a handler forgot is the process’s to end by; its jobs go to others.',
    'cli/work › an error that nobody caught is told with their stack, and ends the process with 1',
    'worker/crash › a job that takes its process down becomes a dead letter and drags no neighbour along',
  ),
  tried(
    'J16',
    'The packed package installs into an empty project and runs, from each kind of module.',
    'package/package › an ECMAScript module imports it and a job runs',
    'package/package › a CommonJS module requires it and a job runs',
    'package/package › types and entry points resolve for every way of importing that ESM has',
    'package/consumers › a job is done › bundled by esbuild (%s)',
    'package/consumers › a job is done › bundled by webpack',
    'package/consumers › a job is done › built by Vite for a server, with the packages beside it',
    'package/consumers › a job is done › in a route of Next, built and started',
    'package/consumers › a job is done › in a test of Jest',
    'package/consumers › a job is done › in a test of Vitest',
    'package/consumers › a job is done › in Bun',
    'package/consumers › a job is done › compiled by TypeScript with module %s, resolution %s, as .%s',
  ),
  tried(
    'J17',
    'Bundled into one file elsewhere it migrates and works.',
    'faults/bundle › a single file in another folder does all of it',
  ),
  tried(
    'J19',
    'A process that only enqueues opens a connection when it first needs one, and as many as it uses at once.',
    'client/life › a client › connects when it is first used, not when it is made',
    'client/life › a client › that does one thing after the other has one connection',
  ),
  absent(
    'J20',
    'The stop of a host waits for ours.',
    'There is no adapter to a framework: whoever stops awaits stop().',
  ),
]
