// Colours, or none: decided once for each stream.

import { styleText } from 'node:util'
import type { Io, Sink } from './io.ts'

export type Style = Parameters<typeof styleText>[0]
export type Paint = (style: Style, text: string) => string

/**
 * Colours only on a terminal that shows them. `--no-color` and NO_COLOR take them away, FORCE_COLOR brings them.
 *
 * Source: https://no-color.org, https://force-color.org
 */
export function hasColours(sink: Sink, env: Io['env'], wanted = true): boolean {
  if (!wanted) return false
  const { FORCE_COLOR: forced, NO_COLOR: refused, TERM: terminal } = env
  if (forced) return forced !== '0' && forced !== 'false'
  return sink.isTTY === true && !refused && terminal !== 'dumb'
}

/** `styleText`, asked to judge nothing by itself: newer releases would look at the process's own stdout. */
const always = styleText as (style: Style, text: string, options: { validateStream: boolean }) => string

export const painter = (isOn: boolean): Paint =>
  isOn
    ? (style, text) => (text === '' ? '' : always(style, text, { validateStream: false }))
    : (_, text) => text

/** One colour per state, the same wherever a state is shown. */
export const STATE_STYLES: Readonly<Record<string, Style>> = {
  queued: 'cyan',
  retryable: 'yellow',
  running: 'blue',
  done: 'green',
  failed: 'red',
  cancelled: 'gray',
  dead_letter: ['bold', 'red'],
}
