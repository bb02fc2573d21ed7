/** Networks of their own for tests and benches of dnsmasq: nothing of them is in the host's namespace. */
import { mkdtemp, rm } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ExecOptions, exec } from '../../lib/exec.ts'
import { type Program, type ProgramOptions, startProgram } from '../../lib/program.ts'
import type { DaemonState, DhcpDesired, DhcpSighting } from './desired.ts'
import type { Answer, Question } from './fixtures/ask.ts'

const fixture = (name: string): string => new URL(`fixtures/${name}.ts`, import.meta.url).pathname

/** A network namespace that lives as long as a process of ours, and so not longer than we do. */
export class Namespace implements AsyncDisposable {
  readonly #holder: Program

  private constructor(holder: Program) {
    this.#holder = holder
  }

  static async create(): Promise<Namespace> {
    const { promise: isReady, resolve: ready } = Promise.withResolvers<void>()
    const script = 'ip link set dev lo up && echo ready && exec sleep infinity'
    const holder = await startProgram('setpriv', ['--pdeathsig=KILL', 'unshare', '--net', 'sh', '-c', script], {
      onLine: line => void (line === 'ready' && ready()),
    })
    const ended = holder.ended.then(how => {
      throw new Error(`no network namespace could be made: ${how}`)
    })
    ended.catch(() => {})
    await Promise.race([isReady, ended])
    return new Namespace(holder)
  }

  get pid(): number {
    return this.#holder.pid
  }

  within(command: string, args: readonly string[]): [string, string[]] {
    return ['nsenter', [`--net=/proc/${this.pid}/ns/net`, command, ...args]]
  }

  async run(command: string, args: readonly string[], options: ExecOptions = {}): Promise<string> {
    return (await exec(...this.within(command, args), options)).stdout.toString('utf8')
  }

  start(command: string, args: readonly string[], options: ProgramOptions = {}): Promise<Program> {
    return startProgram(...this.within(command, args), options)
  }

  /** Commands of `ip`, one a line. */
  async ip(...lines: readonly string[]): Promise<void> {
    await this.run('ip', ['-batch', '-'], { input: lines.map(line => `${line}\n`).join('') })
  }

  /** Asks DHCP; null where there was no answer before that to the last question. */
  async ask(questions: readonly Question[], server?: string): Promise<(Answer | null)[]> {
    const args = [fixture('ask'), JSON.stringify(questions), ...(server === undefined ? [] : [server])]
    return JSON.parse(await this.run(process.execPath, args)) as (Answer | null)[]
  }

  async resolve(server: string, ...names: readonly string[]): Promise<string[][]> {
    return JSON.parse(await this.run(process.execPath, [fixture('resolve'), server, ...names])) as string[][]
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#holder.stop()
  }
}

/** A switch in a namespace of its own. */
export class Switch implements AsyncDisposable {
  readonly #namespace: Namespace
  #ports = 0

  private constructor(namespace: Namespace) {
    this.#namespace = namespace
  }

  static async create(): Promise<Switch> {
    const namespace = await Namespace.create()
    await namespace.ip('link add name bridge type bridge forward_delay 0 mcast_snooping 0', 'link set dev bridge up')
    return new Switch(namespace)
  }

  async plug(into: Namespace, name: string): Promise<void> {
    this.#ports += 1
    const port = `port${this.#ports}`
    await this.#namespace.ip(
      `link add name ${port} type veth peer name ${name} netns ${into.pid}`,
      `link set dev ${port} master bridge up`,
    )
    await into.ip(`link set dev ${name} up`)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#namespace[Symbol.asyncDispose]()
  }
}

/** The service as a process of its own in a namespace. */
export class Served implements AsyncDisposable {
  readonly program: Program
  readonly dir: string
  readonly sightings: DhcpSighting[]
  readonly #socket: string

  private constructor(program: Program, dir: string, socket: string, sightings: DhcpSighting[]) {
    this.program = program
    this.dir = dir
    this.#socket = socket
    this.sightings = sightings
  }

  static async start(
    namespace: Namespace,
    dir: string,
    options: { readonly follow?: readonly string[]; readonly keepSightings?: boolean } = {},
  ): Promise<Served> {
    const socket = join(dir, `socket-${process.pid}-${performance.now()}`)
    const { promise: isReady, resolve: ready } = Promise.withResolvers<void>()
    const sightings: DhcpSighting[] = []
    const said: string[] = []
    const external = options.follow === undefined ? [] : ['external', ...options.follow]
    const program = await namespace.start(process.execPath, [fixture('serve'), dir, socket, ...external], {
      onLine: line => {
        const heard = line.startsWith('{"ready"') || line.startsWith('{"sighting"')
        if (!heard) said.push(line)
        else if (line.startsWith('{"ready"')) ready()
        else if (options.keepSightings !== false)
          sightings.push((JSON.parse(line) as { sighting: DhcpSighting }).sighting)
      },
    })
    const ended = program.ended.then(how => {
      throw new Error(`the service ended: ${how}\n${said.join('\n')}`)
    })
    ended.catch(() => {})
    await Promise.race([isReady, ended])
    return new Served(program, dir, socket, sightings)
  }

  /** Milliseconds it took. */
  async apply(desired: DhcpDesired): Promise<number> {
    return (await this.#send('/apply', JSON.stringify(desired))) as number
  }

  async state(): Promise<DaemonState[]> {
    return (await this.#send('/state', '')) as DaemonState[]
  }

  #send(path: string, body: string): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    const sent = request({ socketPath: this.#socket, path, method: 'POST' }, response => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString('utf8')
        if (response.statusCode === 200) resolve(JSON.parse(text))
        else reject(new Error(text))
      })
    })
    sent.on('error', reject)
    sent.end(body)
    return promise
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.program.stop()
  }
}

export async function temporaryDirectory(): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp(join(tmpdir(), 'muster-dhcp-'))
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) }
}

/** Asks again until it is so; the limit of the test is the limit. */
export async function until<Result>(
  look: () => Promise<Result>,
  isSo: (result: Result) => boolean,
  pause = 20,
): Promise<Result> {
  for (;;) {
    const result = await look()
    if (isSo(result)) return result
    await new Promise(resolve => setTimeout(resolve, pause))
  }
}
