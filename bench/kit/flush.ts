// What a flush to the disk takes here: every commit waits for one, so it stands beside each latency.

import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Times of writing 8 kB and flushing it, where the server of the bench keeps its data. Unit: ms. */
export function flushMs(times: number): number[] {
  const folder = mkdtempSync(join(tmpdir(), 'rowlock-bench-flush-'))
  const file = openSync(join(folder, 'file'), 'w')
  const page = Buffer.alloc(8192, 1)
  try {
    return Array.from({ length: times }, () => {
      const began = performance.now()
      writeSync(file, page)
      fdatasyncSync(file)
      return performance.now() - began
    })
  } finally {
    closeSync(file)
    rmSync(folder, { recursive: true, force: true })
  }
}
