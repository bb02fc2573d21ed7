import { lstat, readFile, readlink, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { MusterError } from '../../../lib/errors.ts'
import { exec } from '../../../lib/exec.ts'
import { isInstalled } from '../../../lib/which.ts'
import type { OpenSubject, SubjectOptions, SubjectResult } from '../subject.ts'
import { type BootedContainer, type ContainerOptions, bootContainer } from './boot.ts'
import { capture } from './capture.ts'
import { withEnvironment } from './environment.ts'

export interface OpenContainer extends OpenSubject {
  /** Its first process, as this machine numbers it. */
  readonly pid: number
}

const BOOT_TIMEOUT = 300_000

/**
 * The tree, booted as a container by its own init, with a network that has a loopback and leads nowhere. What it writes
 * is thrown away; the container ends with us, however we end.
 */
export async function openContainer(tree: string, options: ContainerOptions): Promise<OpenContainer> {
  const { work, signal, timeout = BOOT_TIMEOUT } = options
  const init = await initOf(tree)
  await requireNspawn()
  await using stack = new AsyncDisposableStack()
  const container = stack.use(await bootContainer(tree, init === 'systemd', { ...options, timeout }))
  const closing = new AbortController()
  const limits = await limitsOf(container.pid).catch(() => {
    throw container.trouble('ended while it started')
  })
  const enter = [...limits, ...ENTER, `--target=${container.pid}`, '--']
  const commands = new Commands(container, enter, work, AbortSignal.any([signal, closing.signal]))
  // Commands end first: they would take the end of the container for an answer.
  stack.defer(async () => {
    closing.abort()
    await commands.settled()
  })
  if (init === 'systemd') await mustBeUp(container, commands, timeout)
  const owned = stack.move()
  return {
    place: 'container',
    pid: container.pid,
    run: (argv, more) => commands.run(argv, more),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

/** What runs beside the container's own processes, in its namespaces. */
class Commands {
  readonly #container: BootedContainer
  readonly #enter: readonly string[]
  readonly #work: string
  readonly #signal: AbortSignal
  readonly #running = new Set<Promise<unknown>>()
  #count = 0

  constructor(container: BootedContainer, enter: readonly string[], work: string, signal: AbortSignal) {
    this.#container = container
    this.#enter = enter
    this.#work = work
    this.#signal = signal
  }

  async run(argv: readonly string[], options: SubjectOptions = {}): Promise<SubjectResult> {
    // Its number may be somebody else's by now.
    if (this.#container.hasEnded) throw this.#container.trouble('has ended')
    const result = this.#start(argv, options)
    this.#running.add(result)
    try {
      const found = await result
      if (found.exitCode !== 0) await this.#mustBeAlive()
      return found
    } catch (error) {
      if (!this.#signal.aborted) await this.#mustBeAlive()
      throw error
    } finally {
      this.#running.delete(result)
    }
  }

  /** A command may have been torn away with the container, or could not get in: no answer of its own. */
  async #mustBeAlive(): Promise<void> {
    if (!(await isAlive(this.#container.pid))) throw this.#container.trouble('has ended')
  }

  async settled(): Promise<void> {
    await Promise.allSettled(this.#running)
  }

  async #start(argv: readonly string[], { input, env, cwd, ...limits }: SubjectOptions): Promise<SubjectResult> {
    const cgroup = join(this.#container.cgroup, 'payload', `muster-${this.#count++}`)
    const there = cwd === undefined ? argv : ['/bin/sh', '-c', 'cd "$0" && exec "$@"', cwd, ...argv]
    const command = [...withEnvironment(env), ...this.#enter, ...there]
    try {
      return await capture(
        ({ stderr, ...wires }) =>
          exec('sh', ['-c', START, 'sh', cgroup, stderr, ...command], {
            ...wires,
            timeout: 0,
            group: true,
            cwd: '/',
            ...(input !== undefined && { input }),
          }),
        { ...limits, dir: this.#work, signal: this.#signal, onTimeout: () => killAll(cgroup) },
      )
    } finally {
      // What a command has left running goes on, as on any machine.
      await rmdir(cgroup).catch(() => {})
    }
  }
}

/** A cgroup of its own below the container's: its systemd may sort it elsewhere, and a time-out ends all of it. */
const START = '{ mkdir "$1" && echo 0 >"$1/cgroup.procs"; } 2>/dev/null; stderr=$2; shift 2; "$@" 2>"$stderr"; exit $?'

const ENTER = ['nsenter', '--all', '--root', '--wd']

/** The capabilities of the container: whoever enters it would keep all of this machine's otherwise. */
async function limitsOf(pid: number): Promise<string[]> {
  const [status, last] = await Promise.all(
    [`/proc/${pid}/status`, '/proc/sys/kernel/cap_last_cap'].map(path => readFile(path, 'latin1')),
  )
  const allowed = BigInt(`0x${/^CapBnd:\s*([0-9a-f]+)$/m.exec(status ?? '')?.[1] ?? '0'}`)
  const all = Array.from({ length: Number(last) + 1 }, (_, bit) => bit)
  const taken = all.filter(bit => ((allowed >> BigInt(bit)) & 1n) === 0n)
  return taken.length === 0 ? [] : ['setpriv', `--bounding-set=${taken.map(bit => `-cap_${bit}`).join(',')}`]
}

/** A process that has ended but is not buried yet has no namespaces any more. */
const isAlive = (pid: number): Promise<boolean> =>
  readlink(`/proc/${pid}/ns/pid`).then(
    () => true,
    () => false,
  )

async function killAll(cgroup: string): Promise<void> {
  const pids = await readFile(join(cgroup, 'cgroup.procs'), 'latin1').catch(() => '')
  for (const pid of pids.match(/\d+/g) ?? [])
    try {
      process.kill(Number(pid), 'SIGKILL')
    } catch {
      // It ended by itself meanwhile.
    }
}

/** It has told that it is up; some of it may have failed (degraded), which is for tests to find. */
async function mustBeUp(container: BootedContainer, commands: Commands, timeout: number): Promise<void> {
  const { stdout, stderr } = await commands.run(['systemctl', 'is-system-running', '--wait'], { timeout })
  const state = stdout.toString('utf8').trim()
  if (['running', 'degraded', 'starting'].includes(state)) return
  throw container.trouble(`did not come up: its state is ${state || stderr.toString('utf8').trim() || 'unknown'}`)
}

/** Where systemd-nspawn looks, in its order. */
const INITS = [
  ['usr/lib/systemd/systemd', 'systemd'],
  ['lib/systemd/systemd', 'systemd'],
  ['usr/sbin/init', 'other'],
  ['sbin/init', 'other'],
] as const

async function initOf(tree: string): Promise<'systemd' | 'other'> {
  for (const [path, kind] of INITS) {
    // Links in the tree lead anywhere, also out of it: only their names count.
    const isThere = await lstat(join(tree, path)).then(
      () => true,
      () => false,
    )
    if (isThere) return kind
  }
  throw new MusterError('IMAGE_INCOMPLETE', 'the root has no init, so it cannot be booted as a container', {
    hint: 'add one to its packages (systemd-sysv on Debian), or let its tests run in the plain root: where: root',
  })
}

async function requireNspawn(): Promise<void> {
  if (process.getuid?.() !== 0)
    throw new MusterError('BUILD_NEEDS', 'booting an image as a container needs root', { hint: 'run it with sudo' })
  if (await isInstalled('systemd-nspawn')) return
  throw new MusterError('BUILD_NEEDS', 'this machine lacks systemd-nspawn', {
    hint: 'on Debian: apt-get install systemd-container',
  })
}
