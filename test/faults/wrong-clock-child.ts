// A worker whose Date is wrong from its start on, or steps an hour back and forth while it works. Timers and the
// monotonic clock stay right, as they do when somebody sets a machine's clock.

const { skewMs } = JSON.parse(process.env.CHILD_INPUT!)
const Real = globalThis.Date
let byMs = typeof skewMs === 'number' ? skewMs : 0
if (skewMs === 'stepping') {
  setInterval(() => {
    byMs = byMs === 0 ? -3_600_000 : 0
  }, 110).unref()
}

globalThis.Date = class extends Real {
  constructor(...given: []) {
    if (given.length === 0) super(Real.now() + byMs)
    else super(...given)
  }

  static override now() {
    return Real.now() + byMs
  }
} as DateConstructor

await import('../worker/child.ts')

export {}
