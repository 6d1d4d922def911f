// Asking a Standard Schema, whichever library made it, and wording what it says.
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { pathText } from './path.ts'
import { isError, peek, show } from './show.ts'
import { cutText } from './text.ts'

/** One thing that a schema found wrong. */
export interface Issue {
  readonly message: string
  readonly path?: readonly PropertyKey[]
}

/** What a schema said: the value it made, or what is wrong. */
export type Verdict<Out> =
  | { readonly value: Out; readonly issues?: undefined }
  | { readonly issues: readonly Issue[]; readonly thrown?: unknown }

const SHOWN = 3
const ISSUE_BYTES = 300

/**
 * Ask a schema about a value. Answers at once when the schema does, with a promise when it needs one.
 *
 * Never throws or rejects: a schema that does is taken as refusing, with what it threw in `thrown`.
 */
export function validate<Out>(
  schema: StandardSchemaV1<unknown, Out>,
  value: unknown,
): Verdict<Out> | Promise<Verdict<Out>> {
  try {
    const result = schema['~standard'].validate(value)
    if (typeof (result as PromiseLike<unknown>).then !== 'function')
      return verdict(result as StandardSchemaV1.Result<Out>)
    return Promise.resolve(result).then(verdict).catch(threw)
  } catch (error) {
    return threw(error)
  }
}

function verdict<Out>(result: StandardSchemaV1.Result<Out>): Verdict<Out> {
  if (typeof result !== 'object') throw new TypeError(`no Standard Schema result: ${show(result)}`)
  if (!result.issues) return { value: result.value }
  return { issues: result.issues.map(issueOf) }
}

function issueOf({ message, path }: StandardSchemaV1.Issue): Issue {
  if (path === undefined) return { message }
  return { message, path: path.map((part) => (typeof part === 'object' ? part.key : part)) }
}

function threw(error: unknown): { issues: readonly Issue[]; thrown: unknown } {
  const message = isError(error) ? peek(error, 'message') : error
  return { issues: [{ message: `the schema threw ${show(message)}` }], thrown: error }
}

/** Issues in one line: `to: Invalid email; at: Required`, at most three of them. */
export function issuesText(issues: readonly Issue[]): string {
  const shown = issues.slice(0, SHOWN).map(({ message, path = [] }) => {
    const said = cutText(String(message), ISSUE_BYTES)
    return path.length === 0 ? said : `${pathText(path)}: ${said}`
  })
  const more = issues.length > SHOWN ? `; and ${issues.length - SHOWN} more` : ''
  return `${shown.join('; ') || 'no reason was given'}${more}`
}
