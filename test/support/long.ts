// Whether there is time for what takes minutes: ROWLOCK_LONG=1, as `./check --long` sets it for every file that asks.

export const IS_LONG = process.env.ROWLOCK_LONG === '1'
