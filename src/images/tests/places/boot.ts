import { randomBytes } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'
import { MusterError } from '../../../lib/errors.ts'
import { startProgram } from '../../../lib/program.ts'
import { TESTS_INSIDE } from '../subject.ts'
import { StartNotices } from './notices.ts'
import { openPipe } from './pipe.ts'

export interface ContainerOptions {
  /** An empty directory, on a file system that an overlay can write to. */
  readonly work: string
  readonly signal: AbortSignal
  /** The folder of the tests, to be seen inside. */
  readonly tests?: string
  readonly onConsole?: (chunk: Buffer) => void
  /** Milliseconds it may take to come up; five minutes unless said. */
  readonly timeout?: number
}

export interface BootedContainer extends AsyncDisposable {
  /** Its first process, as this machine numbers it. */
  readonly pid: number
  /** The directory of its cgroup. */
  readonly cgroup: string
  readonly hasEnded: boolean
  /** An error that shows the end of its console. */
  trouble(what: string): MusterError
}

const SCRIPT = fileURLToPath(new URL('container.sh', import.meta.url))
/** It has scratch directories of these names, and systemd-nspawn a lock. */
const SCRATCH = ['root', 'overlay', 'upper', 'tree', '.#root.lck']
/** For clearing away, which takes a tenth of a second. */
const PATIENCE = 30_000
const LAST_WORDS = 1000

const NSPAWN = [
  '--boot',
  // Nothing of systemd need run on this machine.
  '--register=no',
  '--keep-unit',
  '--console=read-only',
  '--private-network',
  '--link-journal=no',
  '--resolv-conf=off',
  '--timezone=off',
  '--machine=muster-test',
  // Without machined nobody keeps a container from the devices whose nodes it makes.
  '--drop-capability=CAP_MKNOD',
]

/** When we are killed it is told, and clears away; Ctrl-C at the terminal is for us alone. */
const AROUND = ['--pdeathsig=TERM', 'setsid', 'unshare', '--mount', '--propagation=private', 'sh', SCRIPT]

/** `saysReady`: its init tells when everything is started (systemd); of another init we only know that it runs. */
export async function bootContainer(
  tree: string,
  saysReady: boolean,
  { work, signal, tests, onConsole, timeout }: Required<Pick<ContainerOptions, 'timeout'>> & ContainerOptions,
): Promise<BootedContainer> {
  const screen = new Screen()
  const notices = new StartNotices()
  await using stack = new AsyncDisposableStack()
  stack.defer(async () => {
    for (const name of SCRATCH) await rm(join(work, name), { recursive: true, force: true })
  })
  const output = await openPipe(work, chunk => {
    screen.add(chunk)
    onConsole?.(chunk)
  })
  stack.use(output)
  const notify = stack.use(await openPipe(work, chunk => notices.hear(chunk)))
  const own = [
    `--notify-ready=${saysReady ? 'yes' : 'no'}`,
    `--uuid=${randomBytes(16).toString('hex')}`,
    ...(tests === undefined ? [] : [`--bind-ro=${tests.replaceAll(/[\\:]/g, String.raw`\$&`)}:${TESTS_INSIDE}`]),
  ]
  const args = [...AROUND, String(process.pid), tree, work, notify.path, ...NSPAWN, ...own]
  const program = stack.adopt(await startProgram('setpriv', args, { outputTo: output.writer, cwd: '/' }), running =>
    running.stop(PATIENCE),
  )
  const trouble = (what: string): MusterError =>
    new MusterError('EXEC_FAILED', `the container ${what}`, {
      details: screen.lastLines(),
      hint: 'above are the last lines of its console',
    })
  let hasEnded = false
  const ended = program.ended.then(async () => {
    hasEnded = true
    await output.finished(AbortSignal.timeout(LAST_WORDS))
    throw trouble('ended while it started')
  })
  const limit = AbortSignal.timeout(timeout)
  const tooLate = abortOf(AbortSignal.any([signal, limit])).then(() => {
    signal.throwIfAborted()
    throw trouble(`was not up after ${timeout / 1000} s`)
  })
  const started = await Promise.race([notices.ready, ended, tooLate])
  const owned = stack.move()
  return {
    pid: started.pid,
    // Where it is mounted only container.sh sees.
    cgroup: `/proc/${program.pid}/root${started.cgroup}`,
    get hasEnded() {
      return hasEnded
    },
    trouble,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

const abortOf = (signal: AbortSignal): Promise<void> =>
  new Promise(resolve => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })

/** The end of what the console showed. */
class Screen {
  #text = ''

  add(chunk: Buffer): void {
    this.#text = (this.#text + chunk.toString('latin1')).slice(-SCREEN_KEPT)
  }

  lastLines(): string[] {
    const text = stripVTControlCharacters(Buffer.from(this.#text, 'latin1').toString('utf8'))
    const lines = text.split(/[\r\n]+/).map(line => line.trimEnd())
    return lines.filter(line => line !== '').slice(-SCREEN_LINES)
  }
}

const SCREEN_KEPT = 64 * 1024
const SCREEN_LINES = 20
