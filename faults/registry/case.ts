// A fault that users of job queues met, as a kind; what must hold here whatever is broken; and which test tries it.

/** A part of Rowlock that is not there yet. */
export type Coming = 'schedules' | 'strict order' | 'a dashboard' | 'a second release'

/** Who answers for a case. */
export type Owner =
  | {
      /** `file › describe › test`: what tries this kind of fault; a title may stand with the places for its values. */
      readonly test: string
      /** What tries other sides of it. */
      readonly also: readonly string[]
    }
  /** It cannot happen here, and why. */
  | { readonly none: string }
  /** It comes with a part that is not there yet. */
  | { readonly waits: Coming }

/** One kind of fault. */
export interface Case {
  readonly id: string
  /** In our words, in a sentence. */
  readonly holds: string
  readonly owner: Owner
}

/** `engine/reap › a lease that is over › …`, as it stands in the registry: a file below test/, and the name in it. */
function full(short: string): string {
  const [file, ...name] = short.split(' › ')
  return `test/${file}.test.ts › ${name.join(' › ')}`
}

/** A case that a test owns. */
export const tried = (id: string, holds: string, test: string, ...also: string[]): Case => ({
  id,
  holds,
  owner: { test: full(test), also: also.map(full) },
})

/** A case that cannot happen here. */
export const absent = (id: string, holds: string, none: string): Case => ({ id, holds, owner: { none } })

/** A case of something that is not there yet. */
export const coming = (id: string, holds: string, waits: Coming): Case => ({ id, holds, owner: { waits } })
