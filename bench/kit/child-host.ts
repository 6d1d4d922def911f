// The program of a child process: loads one module, runs its exported functions when asked, and measures each.

import { pathToFileURL } from 'node:url'

/** Send something to the parent between answers. */
export function tell(told: unknown): void {
  process.send?.({ type: 'told', told })
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  process.on('disconnect', () => process.exit(0))
  let module: Record<string, (argument: unknown) => unknown> = {}
  try {
    module = await import(process.argv[2]!)
  } catch (error) {
    const { code, message, stack } = error as NodeJS.ErrnoException
    if (code === 'ERR_MODULE_NOT_FOUND' && /package/.test(message)) {
      process.send?.({ type: 'missing', why: message.split(' imported from')[0] })
    } else process.send?.({ type: 'missing', why: String(stack) })
  }
  process.on('message', async ({ id, name, argument }: { id: number; name: string; argument: unknown }) => {
    const cpu = process.cpuUsage()
    const began = performance.now()
    try {
      const run = module[name]
      if (run === undefined) throw new Error(`${process.argv[2]} exports no ${name}`)
      const value = await run(argument)
      const ms = performance.now() - began
      const { user, system } = process.cpuUsage(cpu)
      process.send?.({ type: 'answered', id, answered: { value, ms, nodeCpuUs: user + system } })
    } catch (error) {
      process.send?.({ type: 'failed', id, why: String((error as Error).stack ?? error) })
    }
  })
  process.send?.({ type: 'loaded' })
}
