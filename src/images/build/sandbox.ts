import { existsSync } from 'node:fs'
import { chmod, mkdir } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { MusterError } from '../../lib/errors.ts'
import { type ExecOptions, type ExecResult, exec, quoteCommand } from '../../lib/exec.ts'

/**
 * Where foreign code runs: always in mount, PID, IPC and UTS namespaces of its own, without a network unless it is said,
 * with the capabilities a package's scripts need and no others, and with nothing of the host to write to. Whatever is
 * mounted is mounted inside those namespaces: they end with their processes, and those end with ours, however it ends.
 *
 *     inRoot   sees the image's tree as /                     steps, package scripts
 *     withTool sees the host's programs (/usr) read-only,     mmdebstrap, dnf, umoci, apt
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
const CAPABILITIES = 'CHOWN DAC_OVERRIDE FOWNER FSETID KILL SETGID SETUID SETPCAP SYS_CHROOT AUDIT_WRITE SETFCAP'.split(
  ' ',
)

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** Options for bwrap as they are typed: no path of ours is among them. */
const words = (text: string): string[] => text.trim().split(/\s+/)

const ISOLATED = words(`
  --die-with-parent --unshare-pid --unshare-ipc --unshare-uts --hostname build --clearenv --cap-drop ALL`)

/** A /proc of the sandbox's own processes; what in it is the machine's can be read at most. */
function proc(at: string): string[] {
  const command = ['--proc', at]
  for (const name of MACHINE_WIDE)
    if (existsSync(`/proc/${name}`)) command.push('--ro-bind', `/proc/${name}`, `${at}/${name}`)
  return command
}
const MACHINE_WIDE = ['sys', 'sysrq-trigger', 'irq', 'bus', 'fs', 'scsi', 'acpi']

const IN_ROOT = words('--dev /dev --perms 1777 --tmpfs /tmp --tmpfs /run --cap-add CAP_MKNOD')

const TOOLS = words(`
  --ro-bind /usr /usr
  --symlink usr/bin /bin --symlink usr/sbin /sbin --symlink usr/lib /lib --symlink usr/lib64 /lib64
  --perms 1777 --tmpfs /tmp --tmpfs /run --tmpfs /var --dir /var/lib/dpkg --dir /var/tmp --dir /root --dev /dev`)

/** Of this machine's settings what its programs need to run; neither its users nor its secrets. */
const SETTINGS = words(`
  alternatives ansible crypto-policies debian_version dnf dpkg ld.so.cache ld.so.conf ld.so.conf.d localtime magic
  nsswitch.conf os-release perl python3 python3.11 python3.12 python3.13 rpm ssl/openssl.cnf`)
/** And to find others; its package manager's settings may hold passwords, and are shown where no script can look. */
const NETWORK_SETTINGS = words('resolv.conf hosts host.conf gai.conf services protocols ssl/certs ca-certificates pki')
const MIRROR_SETTINGS = words('apt containers')

const USERS = fileURLToPath(new URL('etc', import.meta.url))

function settings({ network = false, live = false }: SandboxOptions): string[] {
  const names = [...SETTINGS, ...(network ? NETWORK_SETTINGS : []), ...(live ? [] : MIRROR_SETTINGS)]
  const shown = names.flatMap(name => ['--ro-bind-try', `/etc/${name}`, `/etc/${name}`])
  return [...shown, '--ro-bind', `${USERS}/passwd`, '/etc/passwd', '--ro-bind', `${USERS}/group`, '/etc/group']
}

const LIVE_TARGET = words(`
  --tmpfs /target/dev --tmpfs /target/run --perms 1777 --tmpfs /target/tmp
  --dev-bind /dev/null /target/dev/null --dev-bind /dev/zero /target/dev/zero --dev-bind /dev/full /target/dev/full
  --dev-bind /dev/random /target/dev/random --dev-bind /dev/urandom /target/dev/urandom --dev-bind /dev/tty /target/dev/tty`)

/** `target` becomes /. Packages may carry device nodes, hence CAP_MKNOD. */
export async function inRoot(
  target: Overlay | string,
  argv: readonly string[],
  options: SandboxOptions = {},
): Promise<ExecResult> {
  return run(overlayOf(target), ['--bind', dirOf(target), '/', ...IN_ROOT, ...proc('/proc')], argv, options)
}

/** `target` becomes /target: a tree of layers, or a directory. */
export async function withTool(
  target: Overlay | string | undefined,
  argv: readonly string[],
  options: SandboxOptions = {},
): Promise<ExecResult> {
  const bound = target === undefined ? [] : ['--bind', dirOf(target), '/target']
  // What only unpacks may make the device nodes it finds; what runs scripts may not.
  const more = options.live === true ? [...proc('/target/proc'), ...LIVE_TARGET] : ['--cap-add', 'CAP_MKNOD']
  return run(overlayOf(target), [...TOOLS, ...settings(options), ...proc('/proc'), ...bound, ...more], argv, options)
}

/** An empty directory needs these before it becomes a live target: made by the sandbox, /tmp would be root's alone. */
export async function makeMountPoints(dir: string): Promise<void> {
  for (const [name, mode] of [
    ['dev', 0o755],
    ['proc', 0o755],
    ['run', 0o755],
    ['tmp', 0o1777],
  ] as const) {
    await mkdir(join(dir, name))
    await chmod(join(dir, name), mode)
  }
}

const dirOf = (target: Overlay | string): string => (typeof target === 'string' ? target : target.mountPoint)

const overlayOf = (target: Overlay | string | undefined): Overlay | undefined =>
  typeof target === 'object' ? target : undefined

async function run(
  overlay: Overlay | undefined,
  view: readonly string[],
  argv: readonly string[],
  options: SandboxOptions,
): Promise<ExecResult> {
  const { readable = {}, writable = {}, env = {}, cwd = '/' } = options
  const environment = { PATH, HOME: '/root', LANG: 'C.UTF-8', LC_ALL: 'C.UTF-8', TERM: 'dumb', ...env }
  const command = ['bwrap', ...ISOLATED]
  for (const name of CAPABILITIES) command.push('--cap-add', `CAP_${name}`)
  if (options.network !== true) command.push('--unshare-net')
  // Without a terminal of its own nothing inside can type into ours.
  if (options.interactive !== true) command.push('--new-session')
  command.push(...view)
  for (const [inside, outside] of Object.entries(readable)) command.push('--ro-bind', outside, inside)
  for (const [inside, outside] of Object.entries(writable)) command.push('--bind', outside, inside)
  for (const [name, value] of Object.entries(environment)) command.push('--setenv', name, value)
  command.push('--chdir', cwd, '--', ...argv)
  const execOptions: ExecOptions = {
    timeout: 0,
    // bwrap killed between its fork and its child's start leaves a child that waits for ever, our pipes in its hands.
    group: options.interactive !== true,
    ...(options.input !== undefined && { input: options.input }),
    ...(options.signal && { signal: options.signal }),
    ...(options.onOutput && { onOutput: options.onOutput }),
    ...(options.allow && { allow: options.allow }),
    ...(options.interactive && { interactive: true }),
  }
  try {
    // One stream, so that what is printed stays in its order.
    const told = options.onOutput === undefined ? command : ['sh', '-c', 'exec "$@" 2>&1', 'sh', ...command]
    return await exec('unshare', unshareArgs(overlay, told), execOptions)
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
function unshareArgs(overlay: Overlay | undefined, command: readonly string[]): string[] {
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
