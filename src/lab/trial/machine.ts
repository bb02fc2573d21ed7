import { mkdtemp, rm } from 'node:fs/promises'
import { type Server, type Socket, createServer } from 'node:net'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { once } from 'node:events'
import { openPipe } from '../../images/tests/places/pipe.ts'
import { MusterError } from '../../lib/errors.ts'
import { startProgram } from '../../lib/program.ts'
import { QEMU } from '../qemu.ts'
import { type TrialSpec, trialArguments } from './arguments.ts'
import { Screen } from './screen.ts'

/** A machine that runs, as far as it is seen from outside. */
export interface TrialMachine extends AsyncDisposable {
  /** The second serial line. */
  readonly line: Socket
  /** Fails when the machine has ended or its kernel has given up; never resolves. */
  readonly failed: Promise<never>
  /** An error that shows the end of its console. */
  readonly trouble: (what: string) => MusterError
}

/** For the last of what it says. */
const LAST_WORDS = 1000
const CPUS = 2

/** The machine ends with us, however we end. */
export async function startMachine(
  spec: Omit<TrialSpec, 'shell' | 'cpus'>,
  { work, signal }: { readonly work: string; readonly signal: AbortSignal },
): Promise<TrialMachine> {
  const screen = new Screen()
  const trouble: TrialMachine['trouble'] = what =>
    new MusterError('EXEC_FAILED', `the machine ${what}`, {
      details: screen.lastLines(),
      hint: 'above are the last lines of its console',
    })
  const panic = Promise.withResolvers<void>()
  await using stack = new AsyncDisposableStack()
  const output = stack.use(
    await openPipe(work, chunk => {
      screen.add(chunk)
      if (screen.hasPanicked) panic.resolve()
    }),
  )
  const listener = stack.use(await listen())
  const cpus = Math.min(CPUS, availableParallelism())
  const args = ['--pdeathsig=KILL', QEMU, ...trialArguments({ ...spec, cpus, shell: listener.path })]
  const program = stack.use(await startProgram('setpriv', args, { outputTo: output.writer, cwd: '/' }))
  const lastWords = (): Promise<void> => output.finished(AbortSignal.timeout(LAST_WORDS))
  const failed = Promise.race([
    program.ended.then(async () => {
      await lastWords()
      throw trouble('has ended: it was switched off, wanted to start anew, or QEMU could not run it')
    }),
    panic.promise.then(() => {
      throw trouble('has stopped: its kernel has given up')
    }),
  ])
  // Whoever waits for it may do so later, or not any more.
  failed.catch(() => {})
  const line = await Promise.race([listener.connection, failed, abortOf(signal)])
  stack.defer(() => void line.destroy())
  const owned = stack.move()
  return { line, failed, trouble, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}

interface Listener extends AsyncDisposable {
  readonly path: string
  readonly connection: Promise<Socket>
}

/** For one connection; then nothing is left of it. QEMU connects to us: should we be gone by then, it ends at once. */
async function listen(): Promise<Listener> {
  // The path of a socket must be short (107 bytes), which those of work directories are not always.
  const dir = await mkdtemp(join(tmpdir(), 'muster-vm-'))
  const path = join(dir, 'shell')
  const server = createServer()
  const close = async (): Promise<void> => {
    server.close()
    await rm(dir, { recursive: true, force: true })
  }
  try {
    server.listen(path)
    await once(server, 'listening')
  } catch (error) {
    await close()
    throw error
  }
  return { path, connection: firstOf(server, close), [Symbol.asyncDispose]: close }
}

const firstOf = (server: Server, close: () => Promise<void>): Promise<Socket> =>
  new Promise((resolve, reject) => {
    server.once('connection', (socket: Socket) => {
      // A machine that ends breaks it off; who reads from it hears of that.
      socket.on('error', () => {})
      close().then(() => resolve(socket), reject)
    })
  })

const abortOf = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    const stop = (): void => reject(signal.reason as Error)
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop, { once: true })
  })
