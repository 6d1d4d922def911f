// K: looking at many jobs, and people who change them while they move.

import { coming, tried } from './case.ts'

export const OPERATING = [
  tried(
    'K01',
    'Counts cost the same above a million jobs as above ten thousand, and say that they are about.',
    'engine/queues › counts › cost the same whatever waits, and estimates are near: 1,000,000 jobs, never analysed',
    'engine/look › a count › beyond 10,000 is about, and near',
  ),
  coming(
    'K02',
    'A page of schedules costs the same for a rare one as for one with millions of jobs.',
    'schedules',
  ),
  coming('K04', 'Nothing that a job carries runs in the browser of who looks at it.', 'a dashboard'),
  coming('K05', 'Nobody gets in who was not let in, nor by another’s page.', 'a dashboard'),
  tried(
    'K07',
    'Pages follow a key that no move changes: no job twice, none missed, at a bounded cost.',
    'engine/search › a list is one look: jobs that move all the while are on each of its pages once',
    'engine/look › blocks read, %s, › are those of 50,000 jobs at most, however rare what is looked for',
  ),
  tried(
    'K08',
    'What a cancel answers agrees with what becomes of the job; what was cancelled before its start never starts.',
    'engine/cancel › at any moment between claims and ends: the answer agrees with what becomes of the job',
    'worker/cancel › a prefetched job that is cancelled never starts',
  ),
]
