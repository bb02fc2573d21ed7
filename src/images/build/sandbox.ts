import { dirname, relative } from 'node:path'
import { MusterError } from '../../lib/errors.ts'
import { type ExecOptions, type ExecResult, exec, quoteCommand } from '../../lib/exec.ts'

/**
 * Where foreign code runs: always in mount, PID, IPC and UTS namespaces of its own, without a network unless it is said,
 * with the capabilities a package's scripts need and no others, and with nothing of the host to write to. Whatever is
 * mounted is mounted inside those namespaces: they end with their processes, and those end with ours, however it ends.
 *
 *     inRoot   sees the image's tree as /                     steps, package scripts
 *     withTool sees the host's /usr and /etc read-only,       mmdebstrap, dnf, umoci, apt
 *              and the image's tree as /target
 */
export interface Overlay {
  /** Directories, lowest first. */
  readonly layers: readonly string[]
  /** What changes goes here; nothing may change without one. */
  readonly upper?: string
  readonly work?: string
  /** An empty directory to mount on: only seen inside. */
  readonly mountPoint: string
}

export interface SandboxOptions {
  readonly network?: boolean
  readonly env?: Readonly<Record<string, string>>
  /** Path inside → path outside. */
  readonly readable?: Readonly<Record<string, string>>
  readonly writable?: Readonly<Record<string, string>>
  readonly cwd?: string
  readonly input?: string
  readonly signal?: AbortSignal
  readonly onOutput?: (chunk: Buffer) => void
  readonly interactive?: boolean
  readonly allow?: readonly number[]
  /** The target has /proc, /dev, /run and /tmp as in a running system: for tools that run scripts in it. */
  readonly live?: boolean
}

/** What containers usually have. No CAP_SYS_ADMIN: nothing can be mounted, so device nodes stay unusable (nodev). */
const CAPABILITIES = [
  'CHOWN',
  'DAC_OVERRIDE',
  'FOWNER',
  'FSETID',
  'KILL',
  'SETGID',
  'SETUID',
  'SETPCAP',
  'SYS_CHROOT',
  'AUDIT_WRITE',
  'SETFCAP',
]

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

export async function inRoot(target: Overlay | string, argv: readonly string[], options: SandboxOptions = {}): Promise<ExecResult> {
  const mounts = ['--bind', dirOf(target), '/', '--dev', '/dev', '--proc', '/proc', '--tmpfs', '/tmp', '--tmpfs', '/run']
  // Packages may carry device nodes; they cannot be used (nodev).
  return run(overlayOf(target), [...mounts, '--cap-add', 'CAP_MKNOD'], argv, options)
}

const dirOf = (target: Overlay | string): string => (typeof target === 'string' ? target : target.mountPoint)
const overlayOf = (target: Overlay | string | undefined): Overlay | undefined => (typeof target === 'object' ? target : undefined)

/** `target` becomes /target: a tree of layers, or a directory. */
export async function withTool(
  target: Overlay | string | undefined,
  argv: readonly string[],
  options: SandboxOptions = {},
): Promise<ExecResult> {
  const view = [...toolView(), ...(target === undefined ? [] : ['--bind', dirOf(target), '/target'])]
  return run(overlayOf(target), [...view, ...(options.live === true ? targetDevices() : [])], argv, options)
}

function toolView(): string[] {
  return [
    ...['--ro-bind', '/usr', '/usr', '--ro-bind', '/etc', '/etc'],
    ...['bin', 'sbin', 'lib', 'lib32', 'lib64', 'libx32'].flatMap(name => ['--symlink', `usr/${name}`, `/${name}`]),
    ...['--tmpfs', '/tmp', '--tmpfs', '/run', '--tmpfs', '/var', '--dir', '/var/lib/dpkg', '--dir', '/var/tmp', '--dir', '/root'],
    ...['--proc', '/proc', '--dev', '/dev'],
  ]
}

const targetDevices = (): string[] => [
  ...['--proc', '/target/proc', '--tmpfs', '/target/dev', '--tmpfs', '/target/run', '--tmpfs', '/target/tmp'],
  ...['null', 'zero', 'full', 'random', 'urandom', 'tty'].flatMap(name => ['--dev-bind', `/dev/${name}`, `/target/dev/${name}`]),
]

async function run(
  overlay: Overlay | undefined,
  view: readonly string[],
  argv: readonly string[],
  options: SandboxOptions,
): Promise<ExecResult> {
  const binds = [
    ...Object.entries(options.readable ?? {}).flatMap(([inside, outside]) => ['--ro-bind', outside, inside]),
    ...Object.entries(options.writable ?? {}).flatMap(([inside, outside]) => ['--bind', outside, inside]),
  ]
  const environment = { PATH, HOME: '/root', LANG: 'C.UTF-8', LC_ALL: 'C.UTF-8', TERM: 'dumb', ...options.env }
  const command = [
    'bwrap',
    ...['--die-with-parent', '--unshare-pid', '--unshare-ipc', '--unshare-uts', '--hostname', 'build', '--clearenv'],
    ...(options.network === true ? [] : ['--unshare-net']),
    ...['--cap-drop', 'ALL', ...CAPABILITIES.flatMap(name => ['--cap-add', `CAP_${name}`])],
    ...(options.interactive === true ? [] : ['--new-session']),
    ...view,
    ...binds,
    ...['--chdir', options.cwd ?? '/'],
    ...Object.entries(environment).flatMap(([name, value]) => ['--setenv', name, value]),
    '--',
    ...argv,
  ]
  const execOptions: ExecOptions = {
    timeout: 0,
    ...(options.input !== undefined && { input: options.input }),
    ...(options.signal && { signal: options.signal }),
    ...(options.onOutput && { onOutput: options.onOutput }),
    ...(options.allow && { allow: options.allow }),
    ...(options.interactive && { interactive: true }),
  }
  try {
    return await exec('unshare', unshareArgs(overlay, command), execOptions)
  } catch (error) {
    throw inner(error, argv)
  }
}

/** People want to know of the command they asked for, not of the walls around it. */
function inner(error: unknown, argv: readonly string[]): unknown {
  if (!(error instanceof MusterError) || error.code !== 'EXEC_FAILED') return error
  const [command = '', ...args] = argv
  const reason = error.message.slice(error.message.lastIndexOf(': ') + 2)
  const text = quoteCommand(command, args)
  return new MusterError('EXEC_FAILED', `${text.length > SHOWN ? `${text.slice(0, SHOWN)} …` : text}: ${reason}`, {
    details: error.details,
    cause: error,
    hint: '',
  })
}

const SHOWN = 160

/** A mount namespace in which the layers are one tree; then the command takes the shell's place. */
export function unshareArgs(overlay: Overlay | undefined, command: readonly string[]): string[] {
  const start = ['--mount', '--propagation', 'private', '--']
  if (overlay === undefined) return [...start, ...command]
  const { options, base } = overlayOptions(overlay)
  return [...start, 'sh', '-euc', MOUNT, 'sh', base, options, overlay.mountPoint, ...command]
}

const MOUNT = 'cd "$1"; mount -t overlay -o "$2" muster "$3"; cd /; shift 3; exec "$@"'

/** Mount options fit in one page: layers are named relative to the directory they lie in, so that a hundred fit. */
function overlayOptions({ layers, upper, work, mountPoint }: Overlay): { options: string; base: string } {
  const base = dirname(dirname(layers[0] ?? mountPoint))
  // A tree nobody writes to needs a second layer; the empty mount point will do.
  const lower = [...(upper === undefined ? [mountPoint] : []), ...layers].reverse().map(layer => relative(base, layer))
  const writable = upper === undefined || work === undefined ? [] : [`upperdir=${upper}`, `workdir=${work}`, 'volatile']
  const fixed = ['redirect_dir=off', 'metacopy=off', 'index=off', 'xino=off']
  return { options: [`lowerdir=${lower.join(':')}`, ...writable, ...fixed].join(','), base }
}
