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
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))

process.exitCode = await runCli(process.argv.slice(2), {
  env: process.env,
  cwd: process.cwd(),
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  interrupted: interrupt.signal,
})
