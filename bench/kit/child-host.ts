// The program of a child process: loads one module, runs what it exports (or what its export `peer` has) when asked,
// and measures each. `cpu` is always there: it does nothing, and its answer has the process's CPU time.

process.on('disconnect', () => process.exit(0))
let target: Record<string, (argument: unknown) => unknown> = {}
try {
  const module = await import(process.argv[2]!)
  target = module.peer ?? module
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
    const has = target[name]
    if (has === undefined && name !== 'cpu') throw new Error(`${process.argv[2]} has no ${name}`)
    const value = typeof has === 'function' ? await has.call(target, argument) : has
    const ms = performance.now() - began
    const { user, system } = process.cpuUsage()
    const totalCpuUs = user + system
    const nodeCpuUs = totalCpuUs - cpu.user - cpu.system
    process.send?.({ type: 'answered', id, answered: { value, ms, nodeCpuUs, totalCpuUs } })
  } catch (error) {
    process.send?.({ type: 'failed', id, why: String((error as Error).stack ?? error) })
  }
})
process.send?.({ type: 'loaded' })
