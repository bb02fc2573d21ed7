import { MusterError } from '../../lib/errors.ts'
import { exec } from '../../lib/exec.ts'

/** What building needs of the machine: command, and the Debian package that brings it. */
const ALWAYS: readonly (readonly [command: string, debianPackage: string])[] = [
  ['bwrap', 'bubblewrap'],
  ['unshare', 'util-linux'],
  ['getfattr', 'attr'],
]

/** Says all at once what is missing, before anything has begun. */
export async function requireTools(more: readonly (readonly [string, string])[] = []): Promise<void> {
  if (process.getuid?.() !== 0)
    throw new MusterError('BUILD_NEEDS', 'building an image needs root: it makes files of other users', {
      hint: 'run it with sudo',
    })
  const missing: (readonly [string, string])[] = []
  for (const tool of [...ALWAYS, ...more]) if (!(await isInstalled(tool[0]))) missing.push(tool)
  if (missing.length === 0) return
  const packages = [...new Set(missing.map(([, debianPackage]) => debianPackage))].join(' ')
  throw new MusterError('BUILD_NEEDS', `this machine lacks ${missing.map(([command]) => command).join(', ')}`, {
    hint: `on Debian: apt-get install ${packages}`,
  })
}

const isInstalled = (command: string): Promise<boolean> =>
  exec('sh', ['-c', 'command -v "$1" >/dev/null', 'sh', command], { allow: [1, 127] }).then(
    ({ exitCode }) => exitCode === 0,
  )
