// A process of its own that starts or attaches to a server, says so on one line, and holds it until it is told `stop`.

import { createInterface } from 'node:readline'
import { startEmbedded } from '../../src/embedded/index.ts'

try {
  const { keep, ...options } = JSON.parse(process.argv[2] ?? '{}')
  const { stop, ...server } = await startEmbedded(options)
  console.log(JSON.stringify(server))
  if (keep) {
    for await (const line of createInterface({ input: process.stdin })) if (line === 'stop') break
    process.stdin.destroy()
    await stop()
  }
} catch (error) {
  const { code, message } = error as { code?: string; message: string }
  console.log(JSON.stringify({ error: code ?? 'none', message }))
}
