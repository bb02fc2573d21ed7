/** `bin/muster` as a user meets it: processes, servers and terminals for tests. */
// oxlint-disable-next-line no-restricted-imports -- needs stderr, signals and an open stdin, which lib/exec.ts hides
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'
import { parse } from 'yaml'
import { exec } from '../../src/lib/exec.ts'
import { reaped } from '../reaped.ts'

export const ROOT = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '')
export const MUSTER = join(ROOT, 'bin/muster')
/** A server that is not there: nothing here may ever talk to one that somebody else runs. */
export const NO_SERVER = '/nonexistent/muster.sock'

export type Env = Readonly<Record<string, string>>

/** Nothing of this machine's settings gets in: not its git, not its terminal, not its muster. */
export const BASE_ENV: Env = {
  PATH: `${join(ROOT, 'bin')}:${process.env['PATH'] ?? '/usr/bin:/bin'}`,
  HOME: '/nonexistent',
  NODE_COMPILE_CACHE: join(homedir(), '.cache/muster'),
  LANG: 'C.UTF-8',
  TZ: 'UTC',
  TERM: 'xterm',
  MUSTER_SERVER: NO_SERVER,
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_COUNT: '2',
  GIT_CONFIG_KEY_0: 'user.name',
  GIT_CONFIG_VALUE_0: 'Ada',
  GIT_CONFIG_KEY_1: 'user.email',
  GIT_CONFIG_VALUE_1: 'ada@example.org',
}

export interface Ran {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface RunOptions {
  readonly cwd?: string
  readonly env?: Env
  /** What is piped in; without it standard input is /dev/null. */
  readonly input?: string
  /** Milliseconds after which it is killed. */
  readonly timeout?: number
}

export async function temporaryDirectory(): Promise<string> {
  return realpath(await mkdtemp(join(tmpdir(), 'muster-cli-')))
}

/** One command, to its end. */
export async function run(command: string, args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const program = start(command, args, options)
  program.child.stdin?.end(options.input)
  // What hangs must not outlive its test.
  const limit = setTimeout(() => program.child.kill('SIGKILL'), options.timeout ?? 50_000)
  const status = await program.ended
  clearTimeout(limit)
  return { status, stdout: program.stdout, stderr: program.stderr }
}

/** One command line of muster, split at spaces; words that contain some are given as an array. */
export const muster = (words: string | readonly string[], options: RunOptions = {}): Promise<Ran> =>
  run(MUSTER, typeof words === 'string' ? words.split(' ') : words, options)

export interface Program extends AsyncDisposable {
  readonly child: ChildProcess
  readonly stdout: string
  readonly stderr: string
  /** The exit status; null when a signal ended it. */
  readonly ended: Promise<number | null>
  /** Waits until it has said this on stdout, behind `from`. */
  says(pattern: RegExp | string, from?: number): Promise<string>
}

/** A program that goes on running. Stdin is /dev/null unless something is to be put in. */
export function start(
  command: string,
  args: readonly string[],
  { cwd = '/', env = {}, input }: RunOptions = {},
): Program {
  const stdin = input === undefined ? 'ignore' : 'pipe'
  const child = reaped(spawn(command, args, { cwd, env: { ...BASE_ENV, ...env }, stdio: [stdin, 'pipe', 'pipe'] }))
  const said = { stdout: '', stderr: '' }
  child.stdout?.setEncoding('utf8').on('data', (text: string) => (said.stdout += text))
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (said.stderr += text))
  // It may end before it has read all that is put in.
  child.stdin?.on('error', () => {})
  const ended = once(child, 'close').then(([status]) => status as number | null)
  ended.catch(() => {})
  return {
    child,
    ended,
    get stdout() {
      return said.stdout
    },
    get stderr() {
      return said.stderr
    },
    async says(pattern, from = 0) {
      const found = (): string | undefined => {
        const text = said.stdout.slice(from)
        return typeof pattern === 'string' ? (text.includes(pattern) ? pattern : undefined) : pattern.exec(text)?.[0]
      }
      for (let match = found(); ; match = found()) {
        if (match !== undefined) return match
        const over = await Promise.race([
          new Promise<false>(done => child.stdout?.once('data', () => done(false))),
          ended.then(() => true),
        ])
        const last = found()
        if (over && last === undefined)
          throw new Error(`ended without saying ${pattern}:\n${said.stdout}\n${said.stderr}`)
      }
    },
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
      await ended
    },
  }
}

/** A program at a terminal of its own: what it shows is its stdout, and keys can be typed. */
export interface Terminal extends Program {
  type(keys: string): void
  /** What is on the screen, without colours and cursor movements. */
  readonly plain: string
}

export const CTRL_A = '\x01'
export const CTRL_C = '\x03'
export const CTRL_D = '\x04'

export function terminal(command: string, options: { readonly cwd?: string; readonly env?: Env } = {}): Terminal {
  const program = start('script', ['-qec', command, '/dev/null'], { ...options, input: '' })
  return Object.defineProperties(program as Terminal, {
    type: { value: (keys: string) => void program.child.stdin?.write(keys) },
    plain: { get: () => plainText(program.stdout) },
  })
}

/** Without escape sequences and carriage returns. */
export const plainText = (text: string): string => stripVTControlCharacters(text).replaceAll('\r', '')

/** A small site that has one of everything, comments included. */
export const SITE: Readonly<Record<string, string>> = {
  'site.yaml': `# The whole site.
site: demo
domain: demo.cluster

networks:
  prov: { cidr: 10.77.0.0/16, gateway: 10.77.0.1 } # where nodes boot

defaults:
  boot:
    image: base
    args: ["console=ttyS0,115200"]
  vars: { channel: stable }
`,
  'groups/compute.yaml': `# Compute nodes.
boot:
  image: "compute@{{ vars.channel }}" # which channel
`,
  'groups/gpu.yaml': `groups: [compute] # a GPU node is a compute node
boot:
  image: gpu
  args+: [nouveau.modeset=0] # appended
vars: { gres: "gpu:4" }
`,
  'nodes.yaml': `# Who the nodes are.
n[001-004]:
  groups: [compute] # all alike
  interfaces:
    prov: { address: "{{ '10.77.1.0' | ip_add(index) }}" }

gpu[01-02]:
  groups: [gpu]

# Where people log in.
login1: {}
`,
  'images/base/image.yaml': 'from: { debian: bookworm }\n',
  'images/compute/image.yaml': 'from: { image: base }\n',
  'images/gpu/image.yaml': 'from: { image: base }\n',
}

/** The small site, committed, in a directory of its own. */
export async function makeSite(dir: string, files: Readonly<Record<string, string>> = {}): Promise<string> {
  for (const [path, text] of Object.entries({ ...SITE, ...files })) {
    await mkdir(dirname(join(dir, path)), { recursive: true })
    await writeFile(join(dir, path), text)
  }
  await git(dir, 'init', '--quiet', '--initial-branch=main')
  await git(dir, 'add', '.')
  await git(dir, 'commit', '--quiet', '--message', 'First')
  return dir
}

export async function git(dir: string, ...args: string[]): Promise<string> {
  return (await exec('git', ['-C', dir, ...args], { env: BASE_ENV })).stdout.toString('utf8')
}

export interface RunningServer extends AsyncDisposable {
  readonly url: string
  readonly socket: string
  readonly data: string
  readonly site: string
  /** For the commands that shall talk to it. */
  readonly env: Env
  readonly program: Program
  /** Asks it to stop, as systemd would; its exit status. */
  stop(): Promise<number | null>
}

export async function serve(site: string, data: string, args: readonly string[] = []): Promise<RunningServer> {
  const program = start(MUSTER, ['serve', '--site', site, '--data', data, '--listen', '127.0.0.1:0', ...args])
  const ready = await program.says(/^.*"msg":"ready".*$/m)
  const { url } = JSON.parse(ready) as { url: string }
  const socket = join(data, 'muster.sock')
  const stop = async (): Promise<number | null> => {
    program.child.kill('SIGTERM')
    return program.ended
  }
  return {
    url,
    socket,
    data,
    site,
    program,
    env: { MUSTER_SERVER: socket },
    stop,
    async [Symbol.asyncDispose]() {
      await stop()
    },
  }
}

/** A temporary directory with a server on the small site, all of it gone at the end. */
export interface Lab extends AsyncDisposable {
  readonly dir: string
  readonly site: string
  readonly server: RunningServer
  /** A command at this server, from outside the site. */
  muster(words: string | readonly string[], options?: RunOptions): Promise<Ran>
}

export async function startLab(files: Readonly<Record<string, string>> = {}): Promise<Lab> {
  const dir = await temporaryDirectory()
  const site = await makeSite(join(dir, 'site'), files)
  const server = await serve(site, join(dir, 'data'))
  return {
    dir,
    site,
    server,
    muster: (words, options = {}) => muster(words, { cwd: dir, ...options, env: { ...server.env, ...options.env } }),
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]()
      await rm(dir, { recursive: true })
    },
  }
}

/** Times, commits and tokens differ every time; what stands for them is as long, so that columns stay in place. */
export const normalise = (text: string): string =>
  text
    .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, '0000-00-00T00:00:00.000Z')
    .replaceAll(/muster_[0-9a-f]{12}_[\w-]{43}/g, 'TOKEN')
    .replaceAll(/\b[0-9a-f]{40}\b/g, 'c0ffee'.padEnd(40, '0'))
    .replaceAll(/\b(?=[0-9a-f]*[0-9])[0-9a-f]{12}\b/g, '1d1d1d1d1d1d')
    .replaceAll(/\b(?=[0-9a-f]*[0-9])[0-9a-f]{10}\b/g, 'c0ffee0000')
    .replaceAll(/\b\d+s ago/g, '0s ago')

/** How many spaces stand between columns depends on the longest of what was normalised. */
export const columns = (text: string): string => normalise(text).replaceAll(/ {2,}/g, '  ')

/** What a program reads: from -o json, and from -o yaml. */
export const fromJson = (text: string): unknown => JSON.parse(text)
export const fromYaml = (text: string): unknown => parse(text)
