// The account: one line of JSON for machines, a table with one sentence of verdict for people.

import type { Evidence, Judgement } from './judgement.ts'

export interface Account {
  readonly judgement: Judgement
  readonly evidence: Evidence
  /** What a whole run promises to show, and did not. */
  readonly missing: readonly string[]
  /** The run was cut short by a signal, or by its time. */
  readonly cutShort: string | undefined
  readonly seconds: number
  /** Deliveries of what a receiver had on its book already. */
  readonly repeated: { readonly emails: number; readonly records: number }
  readonly killedWorkers: number
  /** Every process the demo started. */
  readonly pids: readonly number[]
}

export const isBalanced = ({ judgement, missing }: Account): boolean =>
  judgement.faults.length === 0 && missing.length === 0

const TITLES: Readonly<Record<string, string>> = {
  'send-email': 'emails',
  'sync-record': 'records',
  'resize-picture': 'pictures',
  'book-invoice': 'invoices',
}

/** The fields that the first line of the issue names come first, in its order. */
export function accountLine(account: Account): string {
  const { judgement, evidence, seconds, repeated, killedWorkers, pids, missing, cutShort } = account
  const { uninvited, unfinished, stray, rolled_back, ...named } = judgement.figures
  return JSON.stringify({
    ...named,
    seconds: Math.round(seconds * 10) / 10,
    balanced: isBalanced(account),
    ...Object.fromEntries([...evidence.books].map(([kind, book]) => [TITLES[kind] ?? kind, sum(book)])),
    repeated_deliveries: repeated.emails + repeated.records,
    rolled_back,
    uninvited,
    unfinished,
    stray,
    killed_workers: killedWorkers,
    pids,
    ...(missing.length > 0 && { missing }),
    ...(judgement.faults.length > 0 && { faults: judgement.faults }),
    ...(cutShort !== undefined && { cut_short: cutShort }),
  })
}

export function accountTable(account: Account): string {
  const { judgement, evidence, seconds, repeated, killedWorkers } = account
  const { figures } = judgement
  const row = (name: string, figure: number, words = '') =>
    `  ${name.padEnd(20)}${String(figure).padStart(6)}${words && `   ${words}`}`
  const causes = (state: string) => tally(evidence.jobs.filter((job) => job.state === state))
  return [
    '',
    'The queue',
    row('enqueued', figures.enqueued, 'acknowledged: the transaction they were enqueued in committed'),
    row('done', figures.done, `${figures.retried} of them after an attempt that failed`),
    row('failed', figures.failed, causes('failed')),
    row('dead letters', figures.dead_lettered, causes('dead_letter')),
    row('cancelled', figures.cancelled, causes('cancelled')),
    row('reclaimed', figures.reclaimed, `taken back from ${count(killedWorkers, 'killed worker')}`),
    row('rolled back', figures.rolled_back, 'with the order they belonged to: none of them may be seen'),
    '',
    'The receivers’ own books',
    ...[...evidence.books].map(([kind, book]) => row(TITLES[kind] ?? kind, sum(book), WORDS[kind])),
    row('repeated deliveries', repeated.emails + repeated.records, repeatedWords(repeated)),
    '',
    'The account',
    row('lost', figures.lost, 'acknowledged, not failed, dead or cancelled, and on no book'),
    row('delivered twice', figures.delivered_twice, 'took effect more than once in spite of the key'),
    row('uninvited', figures.uninvited, 'on a book though no job that is done accounts for it'),
    '',
    ...judgement.faults.map((fault) => `  ${fault}`),
    ...account.missing.map((sentence) => `  ${sentence}`),
    verdict(account, seconds),
    '',
  ].join('\n')
}

const WORDS: Readonly<Record<string, string>> = {
  'send-email': 'by Message-ID',
  'sync-record': 'by idempotency key, at the ERP',
  'resize-picture': 'whole files in the folder',
  'book-invoice': 'rows of the ledger, written in the job’s own transaction',
}

function verdict(account: Account, seconds: number): string {
  const { figures, faults } = account.judgement
  const after = `after ${seconds.toFixed(1)} s`
  if (faults.length > 0)
    return `The books do NOT balance ${after}: ${count(faults.length, 'fault')}, listed above.`
  const sentence =
    `The books balance ${after}: of ${figures.enqueued} acknowledged jobs none was lost, ` +
    'none took effect twice, and nothing that was rolled back was seen.'
  if (account.missing.length > 0) return `${sentence} But the run did not show what it promises.`
  return account.cutShort === undefined ? sentence : `${sentence} (${account.cutShort})`
}

const repeatedWords = ({ emails, records }: Account['repeated']) =>
  `${emails} e-mails and ${records} records came again after a lost answer, and were recognised`

function tally(jobs: readonly { readonly cause: string | null }[]): string {
  const counts = new Map<string, number>()
  for (const { cause } of jobs) counts.set(cause ?? 'unknown', (counts.get(cause ?? 'unknown') ?? 0) + 1)
  return [...counts].map(([cause, times]) => (times > 1 ? `${cause} × ${times}` : cause)).join(', ')
}

const sum = (book: ReadonlyMap<string, number>) => [...book.values()].reduce((all, times) => all + times, 0)
const count = (n: number, noun: string) => `${n} ${noun}${n === 1 ? '' : 's'}`
