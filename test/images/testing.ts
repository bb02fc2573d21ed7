/** Images in miniature: roots made of busybox, sites of a few lines, data directories that are gone afterwards. */
import { chmod, copyFile, mkdir, readFile, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Manifest } from '../../src/images/manifest.ts'
import { openImageStore } from '../../src/images/store/store.ts'
import { exec } from '../../src/lib/exec.ts'
import { MUSTER, type Program, type Ran, type RunOptions, run, start, temporaryDirectory } from '../cli/testing.ts'

export type Files = Readonly<Record<string, string>>

const BUSYBOX = '/usr/bin/busybox'
const DIRECTORIES = [
  'bin',
  'dev',
  'etc',
  'home',
  'proc',
  'root',
  'run',
  'sys',
  'tmp',
  'usr/bin',
  'usr/share',
  'var/lib',
]
/** Of busybox's hundreds the few that tests use: fewer links are packed sooner. */
const APPLETS = (
  'awk cat chmod chown cp cut dd echo env false find grep head hostname id kill ln ls mkdir mkfifo mknod mount mv nc ' +
  'printf ps pwd readlink rm rmdir sed sh sleep sort stat sync tail test touch tr true umount uname wc wget yes'
).split(' ')

const TINY: Files = {
  'etc/passwd': 'root:x:0:0:root:/root:/bin/sh\nada:x:1000:1000:Ada:/home/ada:/bin/sh\n',
  'etc/group': 'root:x:0:\nada:x:1000:\nhpc:x:900:ada\n',
  'etc/os-release': 'ID=tiny\nVERSION_ID=1\nPRETTY_NAME="Tiny 1"\n',
}

/** A root of one static program that can do a little of everything. */
export async function tinyRoot(dir: string, files: Files = {}): Promise<string> {
  for (const name of DIRECTORIES) await mkdir(join(dir, name), { recursive: true })
  await copyFile(BUSYBOX, join(dir, 'bin/busybox'))
  for (const applet of APPLETS) await symlink('busybox', join(dir, 'bin', applet))
  await writeTree(dir, { ...TINY, ...files })
  return dir
}

export async function writeTree(dir: string, files: Files): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(dir, path)), { recursive: true })
    await writeFile(join(dir, path), text)
    // As git would check it out.
    if (text.startsWith('#!')) await chmod(join(dir, path), 0o755)
  }
}

/** What `muster image build --json` says, and what it showed of its stages meanwhile. */
export interface Built {
  readonly name: string
  readonly digest: string
  readonly manifest: Manifest
  readonly isUnchanged: boolean
  readonly previous?: string
  readonly lockFile?: string
  readonly stages: Readonly<Record<string, 'cached' | 'made' | 'failed'>>
}

/** A site, a data directory and a root to start from. */
export interface Lab extends AsyncDisposable {
  readonly dir: string
  readonly site: string
  readonly data: string
  /** The root, as a directory. */
  readonly root: string
  /** A path in this lab. */
  path(...parts: string[]): string
  /** Writes images/NAME/image.yaml, with files beside it. */
  recipe(name: string, text: string, files?: Files): Promise<void>
  /** With --data and --site of this lab. */
  muster(words: readonly string[], options?: RunOptions): Promise<Ran>
  start(words: readonly string[]): Program
  /** A build that must succeed. */
  build(name: string, flags?: readonly string[]): Promise<Built>
  /** A build that must fail. */
  fails(name: string, flags?: readonly string[]): Promise<Ran>
  /** The same site with another, empty data directory. */
  elsewhere(data: string): Lab
  /** Names and digests of all images. */
  images(): Promise<readonly string[]>
  /** Where an artefact lies. */
  artefact(built: Built, type: string): string
  /** The text of a file in the root of an image. */
  cat(built: Built, path: string): Promise<string>
  /** The root as unsquashfs lists it: path → 'drwxr-xr-x 0/0', and where a link leads. */
  list(built: Built): Promise<Readonly<Record<string, string>>>
}

export async function makeLab(files: Files = {}): Promise<Lab> {
  const dir = await temporaryDirectory()
  const site = join(dir, 'site')
  await writeTree(site, { 'site.yaml': 'site: t\n', 'nodes.yaml': '', ...files })
  await tinyRoot(join(dir, 'root'))
  return lab(dir, site, 'data')
}

function lab(dir: string, site: string, name: string): Lab {
  const data = join(dir, name)
  const all = (words: readonly string[]): string[] => {
    const end = words.indexOf('--')
    const [before, after] = end < 0 ? [words, []] : [words.slice(0, end), words.slice(end)]
    return [...before, '--data', data, '--site', site, ...after]
  }
  const muster: Lab['muster'] = (words, options) => run(MUSTER, all(words), { cwd: dir, ...options })
  const artefact: Lab['artefact'] = ({ manifest, name: image }, type) => {
    const found = manifest.artefacts.find(one => one.type === type)
    if (found === undefined) throw new Error(`${image} has no ${type}`)
    return join(data, 'images/blobs/sha256', found.sha256.slice(0, 2), found.sha256)
  }
  const build = async (image: string, flags: readonly string[] = []): Promise<Ran> =>
    muster(['image', 'build', image, '--json', ...flags])
  return {
    dir,
    site,
    data,
    root: join(dir, 'root'),
    path: (...parts) => join(dir, ...parts),
    recipe: (image, text, files = {}) => writeTree(join(site, 'images', image), { 'image.yaml': text, ...files }),
    muster,
    start: words => start(MUSTER, all(words), { cwd: dir }),
    async build(image, flags) {
      const { status, stdout, stderr } = await build(image, flags)
      if (status !== 0) throw new Error(`muster image build ${image} ended with ${status}:\n${stderr}${stdout}`)
      return { ...(JSON.parse(stdout) as Omit<Built, 'stages'>), stages: stagesIn(stderr) }
    },
    async fails(image, flags) {
      const ran = await build(image, flags)
      if (ran.status === 0) throw new Error(`muster image build ${image} succeeded:\n${ran.stderr}${ran.stdout}`)
      return ran
    },
    elsewhere: other => lab(dir, site, other),
    async images() {
      const store = await openImageStore(join(data, 'images'))
      return (await store.list()).map(one => `${one.name}@${one.digest}`)
    },
    artefact,
    async cat(built, path) {
      const { stdout } = await exec('unsquashfs', ['-cat', artefact(built, 'squashfs'), path])
      return stdout.toString('utf8')
    },
    async list(built) {
      const { stdout } = await exec('unsquashfs', ['-lln', '-d', '', artefact(built, 'squashfs')])
      return listed(stdout.toString('utf8'))
    },
    [Symbol.asyncDispose]: () => rm(dir, { recursive: true, force: true }),
  }
}

/** drwxr-xr-x 0/0  61 2026-01-01 00:00 /etc → '/etc': 'drwxr-xr-x 0/0'; links and devices with what follows. */
function listed(text: string): Record<string, string> {
  const lines = [...text.matchAll(/^(\S{10}) (\d+\/\d+) +(\d+, *\d+|\d+) \S+ \S+ (\/.*?)?( -> .*)?$/gm)]
  return Object.fromEntries(
    lines.map(([, mode = '', owner, size = '', path = '', target = '']) => {
      const device = /^[bc]/.test(mode) ? ` ${size.replaceAll(' ', '')}` : ''
      return [path === '' ? '/' : path, `${mode} ${owner}${device}${target}`]
    }),
  )
}

/** `  run true     0.1 s` → { 'run true': 'made' } */
function stagesIn(text: string): Built['stages'] {
  const lines = [...text.matchAll(/^ {2}(\S.*?) +(cached|failed after \S.*|[\d.]+ ?(?:s|min)\b.*)$/gm)]
  return Object.fromEntries(
    lines.map(([, title = '', how = '']) => [
      title,
      how === 'cached' ? 'cached' : how.startsWith('failed') ? 'failed' : 'made',
    ]),
  )
}

/** What is mounted below a directory, in this mount namespace: nothing, whatever happened. */
export async function mountsBelow(dir: string): Promise<string[]> {
  const mounts = await readFile('/proc/self/mounts', 'utf8')
  return mounts.split('\n').filter(line => line.includes(dir))
}

/** The command lines of all processes that have this text in them, this one's left out. */
export async function processesWith(text: string): Promise<string[]> {
  const found: string[] = []
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) continue
    // It may have ended meanwhile.
    const line = await readFile(`/proc/${name}/cmdline`, 'utf8').catch(() => '')
    if (line.includes(text)) found.push(line.replaceAll('\0', ' ').trim())
  }
  return found
}

export const errorOf = ({ stderr }: Ran): string => /^error: (.*)$/m.exec(stderr)?.[1] ?? `no error in: ${stderr}`
export const hintOf = ({ stderr }: Ran): string => /^hint: {2}(.*)$/m.exec(stderr)?.[1] ?? ''

/** A tar of a directory, with an owner, an order and times of its own. */
export async function tarOf(dir: string, file: string, ...flags: readonly string[]): Promise<string> {
  const fixed = ['--sort=name', '--numeric-owner', '--mtime=@1700000000']
  await exec('tar', ['--create', `--file=${file}`, `--directory=${dir}`, ...fixed, ...flags, '.'])
  return file
}
