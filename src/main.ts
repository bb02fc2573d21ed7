import { runCli } from './cli/run.ts'

const interrupt = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    // The second time it is meant.
    if (interrupt.signal.aborted) process.exit(130)
    interrupt.abort()
  })
}
// A reader that has seen enough (`muster node ls | head`) is no error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0)
  process.stderr.write(`error: cannot print: ${error.message}\nhint:  is there room where the output goes?\n`)
  process.exit(1)
})

const status = await runCli(process.argv.slice(2), {
  env: process.env,
  cwd: process.cwd(),
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  interrupted: interrupt.signal,
})
// What still waits for the network or the terminal must not keep an interrupted command alive.
if (interrupt.signal.aborted) process.exit(status)
process.exitCode = status
