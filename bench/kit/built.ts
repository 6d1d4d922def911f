// Where the built Rowlock is: said by main, read by children. Apart from `build.ts`, which loads the compiler.

/** The environment variable with the folder; children inherit it. */
export const BUILD_VARIABLE = 'ROWLOCK_BENCH_BUILD'
