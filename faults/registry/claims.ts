// C: taking jobs: how many, in which order, at what cost, and who stands in whose way.

import { coming, tried } from './case.ts'

const PLANS = 'engine/claim › every plan claims the same'
const LIMIT = 'engine/max-running › a limit on running jobs'
const READ = 'engine/plan › blocks read by a claim'

export const CLAIMS = [
  tried(
    'C01',
    'A claim takes what it may and no more, whatever plan its statement gets.',
    `${PLANS} › whatever planner switches are off`,
    'engine/claim › bounds › a limit of %i is met exactly',
  ),
  tried(
    'C02',
    'Jobs live their lives under each planner switch and both forced plan caches.',
    'faults/hostile-settings › %s: jobs end as they should',
    'long/planner › claims are the same › %s',
    `${PLANS} › whatever planner switches are off`,
  ),
  tried(
    'C03',
    'A limit on running jobs holds against claims that do not see each other.',
    `${LIMIT} › of %d is never exceeded by eight workers that claim and finish at once`,
    `${LIMIT} › counts what a claim took that was on its way when it was set`,
    'worker/limits › a limit on running jobs › of 3 is used and never exceeded by four workers, who look only when a ' +
      'job ends',
  ),
  tried(
    'C04',
    'A place under a limit is given back once, though two believe that they end the job.',
    `${LIMIT} › counts what a lost worker had until that is given back, and never what was given back twice`,
  ),
  tried(
    'C05',
    'No place under a limit stays empty while somebody waits for one.',
    'worker/limits › a limit on running jobs › tells of a free place those who handle what waits, where the one that ' +
      'made it does not',
    'engine/max-running › a worker that found a queue full › is told by a look that leaves room for want of a slot ' +
      'of its own',
    `${LIMIT} › that is reached is looked at again in a second, for whoever ends a job looks at once`,
  ),
  tried(
    'C07',
    'Under an old snapshot a claim reads about what it does without one, and recovers when it is gone.',
    'faults/old-snapshot › a claim from the frontier reads what it would without one; a full look does after a vacuum',
    'worker/frontier › under an old snapshot › a late transaction of 2,000 jobs is not left behind ' +
      'by a stream of 20,000',
  ),
  tried(
    'C08',
    'A plan made when a table was empty serves it full, and no statement of the hot path reads a table through.',
    `${PLANS} › a plan made for an empty table serves 100,000 jobs`,
    'engine/plan › plans › of a claim: heads and rows come from the dispatch index in its order and are found by place',
    'long/claim-cost › statistics of another time › a million finished and none waiting; then 50,000 wait',
    'long/claim-cost › statistics of another time › a million waiting; then they are gone, and 50,000 others wait',
    'long/claim-cost › statistics of another time › none finished and none waiting; then a million wait',
  ),
  tried(
    'C10',
    'Jobs that are due next year cost those of today nothing.',
    `${READ} › are the same whatever stands in other lines: 100,000 older foreign jobs, 50,000 scheduled ones`,
    'long/claim-cost › what else there is › a million jobs of next year and 100,000 finished ones ' +
      'cost claims and upkeep nothing',
  ),
  tried(
    'C11',
    'What a claim costs goes by what it takes, not by what waits.',
    'engine/flat › blocks of a claim › are a tenth more at the most where 200,000 jobs wait in its line',
    `${READ} › grow with the jobs taken, and not with those left behind`,
    'long/claim-cost › what else there is › a backlog of 10, of 10,000 and of a million costs a claim the same',
  ),
  coming('C13', 'Jobs that wait for their turn under a key hold up no other key.', 'strict order'),
  tried(
    'C14',
    'A row that somebody else has locked is passed by, found afterwards, and its holder named.',
    'engine/claim › locks › rows that others hold are passed by, and found afterwards',
    'engine/why-locked › a job whose row somebody has › %s: by whom, since when, and what that session does',
  ),
  tried(
    'C16',
    'Sequences are 64 bits wide, and only that of the jobs moves with traffic.',
    'faults/names-and-numbers › no sequence moves but for what it numbers, and none ends at 32 bits',
  ),
  tried(
    'C17',
    'A job whose transaction commits late is found by whoever has already passed its place.',
    'worker/wake › an enqueue whose transaction began before the flag went up, and commits after, is found',
    'worker/frontier › under an old snapshot › a late transaction of 2,000 jobs is not left behind ' +
      'by a stream of 20,000',
  ),
  tried(
    'C19',
    'No two verbs wait for each other in a circle, for one job or for many.',
    'engine/deadlock › %s and %s',
    'faults/chaos › a server of its own › whatever breaks, nothing is lost, doubled or stuck',
  ),
  tried(
    'C20',
    'A queue with a great backlog, or a row that somebody holds, keeps no other queue waiting.',
    'faults/fair-queues › of ten queues one has 100,000 jobs: those of the others start among its first few hundred',
  ),
]
