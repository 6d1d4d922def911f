// The keeper: a small process of its own that runs one PostgreSQL for as long as somebody holds it.
//
// It is PostgreSQL's parent, so a server that was killed leaves no zombie, and it stands in a session of its own, so
// Ctrl-C reaches node only. Each user holds a connection to it, which the system closes however that user ends; with
// the last one it stops the server. It is started as a file of its own, and from the sources as text: so it imports
// only what node brings, and has no line that is TypeScript only.

import { spawn } from 'node:child_process'
import { openSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { createInterface } from 'node:readline'

const QUIT_AFTER_MS = 30_000
const KILL_AFTER_MS = 45_000
const GIVE_UP_AFTER_MS = 50_000

const starter = 'the one who started us'
const users = new Set([starter])
const ending = [() => {}]
let joined = 0
let stopping = false
let pid = 0

const signal = (name = 'SIGINT') => {
  if (pid === 0) return
  try {
    if (process.platform === 'win32') spawn(config.control, ['kill', name.slice(3), String(pid)])
    else process.kill(pid, name)
  } catch {
    // It is gone already; its end is noticed elsewhere.
  }
}

const stop = () => {
  if (stopping) return
  stopping = true
  signal('SIGINT')
  setTimeout(() => signal('SIGQUIT'), QUIT_AFTER_MS).unref()
  setTimeout(() => signal('SIGKILL'), KILL_AFTER_MS).unref()
  setTimeout(gone, GIVE_UP_AFTER_MS).unref()
}

const leave = (user = '') => {
  users.delete(user)
  if (users.size === 0) stop()
}

const gone = () => {
  stopping = true
  for (const end of ending) end()
  server.close()
  setTimeout(() => process.exit(), 100)
}

const lines = createInterface({ input: process.stdin })
lines.once('close', () => leave(starter))
const config = JSON.parse(await new Promise((resolve) => lines.once('line', resolve)))
pid = config.adopt ?? 0

const server = createServer((socket) => {
  joined += 1
  const user = `user ${joined}`
  const patience = setTimeout(() => socket.destroy(), 5_000)
  const words = createInterface({ input: socket })
  socket.on('error', () => socket.destroy())
  socket.on('close', () => {
    clearTimeout(patience)
    leave(user)
  })
  words.on('error', () => {})
  words.on('line', (word) => {
    if (word === config.token) {
      clearTimeout(patience)
      if (stopping) return void socket.end('stopping\n')
      users.add(user)
      ending.push(() => socket.end(stopping && !users.has(user) ? 'gone\n' : ''))
      socket.write('joined\n')
    } else if (word === 'leave' && users.has(user)) {
      leave(user)
      if (!stopping) socket.end('stays\n')
    } else {
      socket.destroy()
    }
  })
})

server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : 0
  const draft = `${config.file}.${process.pid}`
  writeFileSync(draft, JSON.stringify({ pid: process.pid, port, token: config.token }), { mode: 0o600 })
  if (stopping) process.exit()
  if (pid === 0) launch()
  else watch()
  renameSync(draft, config.file)
  process.stdout.write(`${port}\n`)
})

const launch = () => {
  const log = openSync(config.log, 'a', 0o600)
  const child = spawn(config.command, config.args, { ...config.spawn, stdio: ['ignore', log, log] })
  child.once('error', (error) => {
    writeFileSync(log, `could not be run: ${error.message}\n`)
    gone()
  })
  child.once('exit', gone)
  pid = child.pid ?? 0
}

// A postmaster that is not our child: another keeper started it and was killed.
const watch = () => {
  const clock = setInterval(() => {
    try {
      process.kill(pid, 0)
      if (process.platform === 'linux' && readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z '))
        throw pid
      if (readFileSync(config.pidFile, 'utf8').startsWith(`${pid}\n`)) return
    } catch {
      // No such process, a zombie, or no such file: the server has ended.
    }
    clearInterval(clock)
    gone()
  }, 100)
}

for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, stop)
