// Preloaded into a worker whose clock is to be wrong: Date is off by FAULTS_SKEW_MS. Timers and the monotonic clock
// stay right, as they do when somebody sets a machine's clock.

const byMs = Number(process.env.FAULTS_SKEW_MS ?? 0)
const Real = globalThis.Date

globalThis.Date = class extends Real {
  constructor(...given) {
    if (given.length === 0) super(Real.now() + byMs)
    else super(...given)
  }

  static now() {
    return Real.now() + byMs
  }
}
