// How a module in a child says something to its parent between answers. Apart from `child-host.ts`, which waits for the
// module: what it waits for can't wait for it.

/** Send something to the parent, who hears it by `onTold`. */
export function tell(told: unknown): void {
  process.send?.({ type: 'told', told })
}
