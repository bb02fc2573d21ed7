import { open, readFile } from 'node:fs/promises'
import { type Server, createServer } from 'node:net'
import { dirname } from 'node:path'
import { makeDirectory } from '../lib/dirs.ts'
import { MusterError } from '../lib/errors.ts'
import { startProgram } from '../lib/program.ts'
import { LAB_VARIABLE } from './names.ts'
import { type ProcessId, identify, isGone } from './processes.ts'
import type { IsReady, LabPlan } from './plan.ts'

export interface RunningServer {
  readonly process: ProcessId
  readonly port: number
  /** Waits until it is ready, as `isReady` says; fails when it ends before, with the last it said. */
  whenReady(isReady: IsReady, signal?: AbortSignal): Promise<void>
}

export interface ServerStart {
  readonly lab: string
  /** How a command is started where the server is to live. */
  readonly within: (command: string, args: readonly string[]) => readonly [string, readonly string[]]
}

const TAIL = 15
const A_MOMENT = 1000

export const urlOf = (port: number): string => `http://127.0.0.1:${port}`

/**
 * Starts the server in the head's namespace with a socket of the host's: a socket stays in the namespace it was made in,
 * so whoever is on the host reaches the server on loopback, although the server lives among the nodes. It inherits the
 * socket as descriptor 3.
 */
export async function startServer(server: LabPlan['server'], options: ServerStart): Promise<RunningServer> {
  await makeDirectory(dirname(server.log))
  await using log = await open(server.log, 'a', 0o600)
  const { size } = await log.stat()
  await using listener = await listenOnHost(server.port)
  const program = await startProgram(...options.within(server.command, server.args), {
    env: { ...server.env, [LAB_VARIABLE]: options.lab },
    outputTo: log.fd,
    descriptors: [listener.descriptor],
    detached: true,
  })
  const process = identify(program.pid)
  const ended = program.ended.then(async how => {
    throw new MusterError('LAB_FAILED', `the server ended before it was ready (${how})`, {
      details: await tail(server.log, size),
      hint: `all it said is in ${server.log}`,
    })
  })
  // That it ends later on is somebody else's concern.
  ended.catch(() => {})
  if (process === undefined) return await ended
  const { port } = listener
  return {
    process,
    port,
    async whenReady(isReady, signal) {
      const over = new AbortController()
      try {
        await Promise.race([isReady(urlOf(port), over.signal), ended, whenAborted(signal)])
      } catch (error) {
        // Whoever waits for a server that ends may notice first; why it ended is what people want to know.
        if (signal?.aborted !== true && (await isGone(process, A_MOMENT))) await ended
        throw error
      } finally {
        over.abort()
      }
    },
  }
}

interface HostListener extends AsyncDisposable {
  readonly port: number
  readonly descriptor: number
}

/** From its end on only the server takes connections; those made meanwhile wait for it. */
async function listenOnHost(port: number): Promise<HostListener> {
  const server = createServer()
  await new Promise<void>((resolve, reject) => {
    server.once('error', error =>
      reject(new MusterError('ADDRESS_UNUSABLE', `127.0.0.1:${port} cannot be used: ${error.message}`)),
    )
    server.listen({ host: '127.0.0.1', port, exclusive: true }, resolve)
  })
  return {
    port: (server.address() as { readonly port: number }).port,
    descriptor: descriptorOf(server),
    [Symbol.asyncDispose]: () => new Promise(resolve => void server.close(() => resolve())),
  }
}

/** Node has no public name for it. */
function descriptorOf(server: Server): number {
  const { fd } = Reflect.get(server, '_handle') as { readonly fd?: unknown }
  if (typeof fd !== 'number' || fd < 0) throw new Error('a listening socket has no descriptor')
  return fd
}

const whenAborted = (signal: AbortSignal | undefined): Promise<never> =>
  new Promise((_, reject) => {
    const give = (): void => reject(signal?.reason as Error)
    if (signal?.aborted === true) give()
    else signal?.addEventListener('abort', give, { once: true })
  })

async function tail(file: string, from: number): Promise<string[]> {
  const text = (await readFile(file)).subarray(from).toString('utf8')
  return text.trimEnd().split('\n').slice(-TAIL)
}
