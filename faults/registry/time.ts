// I: schedules, zones, clocks, and numbers that overflow.

import { coming, tried } from './case.ts'

export const TIME = [
  coming('I01', 'A tick makes one job, though two believe that they lead.', 'schedules'),
  coming('I02', 'A tick makes one job, though processes share a host and a name.', 'schedules'),
  coming('I04', 'A timer that fires early makes its tick once.', 'schedules'),
  coming('I05', 'No stall loses a tick without the policy that says so.', 'schedules'),
  coming('I07', 'A schedule longer than any process lives runs on time.', 'schedules'),
  tried(
    'I08',
    'A part of maintenance that fails at its first statement is tried again, and the rest is done meanwhile.',
    'worker/maintenance › a part of maintenance that fails keeps no other from being done',
    'worker/pool › a loop that fails comes back by itself, and the others go on › %s',
  ),
  coming('I10', 'Every half hour stays every half hour when clocks go back.', 'schedules'),
  coming('I11', 'Shifts of half an hour and days without a midnight are kept.', 'schedules'),
  coming('I13', 'Nothing breaks the chain of a schedule, and nothing doubles it.', 'schedules'),
  coming('I14', 'Ticks are on record on time though every slot is busy.', 'schedules'),
  tried(
    'I16',
    'A machine whose clock is wrong, or steps, costs no lease, no second run and no notice.',
    'faults/wrong-clock › workers an hour ahead, an hour behind and stepping share the jobs, each run once',
  ),
  tried(
    'I17',
    'A wait after any number of failures is finite and between nothing and its cap, in TypeScript and in SQL.',
    'engine/backoff › a policy of anything at all › gives a wait from 0 to 30 days',
    'ground/backoff › a backoff › is whole, finite, and between 0 and its cap, after any number of failures',
    'engine/backoff › is the rule of the client, for every policy, count and dice',
  ),
  tried(
    'I19',
    'A delay that is no length of time is refused; an instant in the past is due now.',
    'client/bad-input › bad input is refused alike on every path › %s: options: %s',
    'ground/request › a request › may be due in the past, and is then due at once: SQL decides by its own clock',
  ),
  coming('I20', 'A schedule has a zone of its own.', 'schedules'),
]
