import { arch as machineArch } from 'node:process'
import { mkdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { MusterError } from '../../lib/errors.ts'
import type { Mutex } from '../../lib/mutex.ts'
import { humanSize } from '../../lib/size.ts'
import { type BuiltImage, buildImages } from '../../images/build/build.ts'
import type { PlannedStage } from '../../images/build/make.ts'
import { type SandboxOptions, inRoot } from '../../images/build/sandbox.ts'
import type { StageWork } from '../../images/build/stage.ts'
import { requireTools } from '../../images/build/tools.ts'
import { packagesOf } from '../../images/content.ts'
import { diffFiles, diffPackages } from '../../images/diff.ts'
import { readChangedFiles } from '../../images/file-list.ts'
import { type ExportFormat, exportImage } from '../../images/export.ts'
import { type ImportSource, importImage } from '../../images/import.ts'
import { type BuildLog, openBuildLog } from '../../images/logs.ts'
import { type Manifest, artefactOf } from '../../images/manifest.ts'
import { openTree } from '../../images/open-tree.ts'
import type { ImageStore } from '../../images/store/store.ts'
import { readRecipe, recipeNames } from '../../site/render-recipe.ts'
import { openSite } from '../../site/site.ts'
import { directorySource } from '../../site/source.ts'
import { patiently } from '../ask.ts'
import { siteDir } from '../connect.ts'
import type { Call } from '../define.ts'
import { type DataOption, imageStore, imagesToRead, shortDigest } from '../images.ts'
import type { Io } from '../io.ts'
import { duration, plural } from '../output.ts'
import { Progress } from '../progress.ts'

const ARCHITECTURES: Readonly<Record<string, 'amd64' | 'arm64'>> = { x64: 'amd64', arm64: 'arm64' }
const thisMachine = (): 'amd64' | 'arm64' => ARCHITECTURES[machineArch] ?? 'amd64'

export interface BuildFlags extends DataOption {
  readonly update?: boolean
  readonly locked?: boolean
  readonly shellOnFailure?: boolean
}

export async function build(call: Call<BuildFlags>): Promise<void> {
  const { io, out, options } = call
  if (options.update === true && options.locked === true)
    throw new MusterError('USAGE', '--update and --locked say opposite things')
  if (options.shellOnFailure === true && io.stdin.isTTY !== true)
    throw new MusterError('USAGE', '--shell-on-failure needs a terminal')
  const dir = await siteDir(io, options)
  const site = await openSite(await directorySource(dir))
  const names = call.rest.length > 0 ? call.rest : recipeNames(site)
  if (names.length === 0) throw new MusterError('RECIPE_UNKNOWN', 'the site has no recipes')
  for (const name of names) readRecipe(site, name)
  const store = await imageStore(io, options)
  const results: unknown[] = []
  for (const name of names) {
    const started = performance.now()
    const built = await buildOne(call, name, { dir, site, store })
    const seconds = (performance.now() - started) / 1000
    results.push({ ...built, seconds })
    if (out.isForPeople) for (const line of await summary(store, built, seconds)) out.line(line)
  }
  if (!out.isForPeople) await out.result(results.length === 1 ? results[0] : results, () => [])
}

interface BuildPlace {
  readonly dir: string
  readonly site: Awaited<ReturnType<typeof openSite>>
  readonly store: ImageStore
  /** Shared by those that are built at once. */
  readonly turns?: Mutex
}

/** One image of the site, with progress on the terminal and its log kept. */
export async function buildOne(call: Call<BuildFlags>, name: string, place: BuildPlace): Promise<BuiltImage> {
  const log = await openBuildLog(place.store.dir, name)
  const built = await buildLogged(call, name, place, log).catch(async (error: unknown) => {
    await log.close()
    throw error
  })
  await log.close(built.isUnchanged ? 'nothing done' : built.digest)
  return built
}

async function buildLogged(
  { io, options }: Call<BuildFlags>,
  name: string,
  { dir, site, store, turns }: BuildPlace,
  log: BuildLog,
): Promise<BuiltImage> {
  using progress = new Progress(io, chunk => log.write(chunk))
  const [built] = await buildImages([name], {
    site,
    siteDir: dir,
    store,
    arch: thisMachine(),
    report: progress,
    signal: io.interrupted,
    update: options.update === true,
    frozen: options.locked === true,
    ...(options.shellOnFailure === true && { onFailure: (work, stage) => openShell(io, progress, work, stage) }),
    ...(turns && { turns }),
    now: new Date(),
  })
  if (built === undefined) throw new MusterError('INTERNAL', `${name} was not built`)
  return built
}

/** In the root as the failed stage left it. */
async function openShell(io: Io, progress: Progress, work: StageWork, stage: PlannedStage): Promise<void> {
  progress.pause()
  io.stderr.write(`${stage.image}: ${stage.title} failed; this is its root. exit ends the build.\n`)
  const { onOutput: _, ...sandbox } = work.sandbox
  // An overlay that was mounted without syncing wants another work directory the next time.
  const again = join(work.scratch, 'overlay')
  await mkdir(again)
  await inRoot({ ...work.overlay, work: again }, SHELL, { ...sandbox, ...atTerminal(io, stage.image) })
}

const SHELL = ['sh', '-c', 'exec $(command -v bash || command -v sh) -i']

/** A person is typing: whatever the last command returned is no failure. */
const atTerminal = (io: Io, name: string): SandboxOptions => ({
  interactive: true,
  allow: Array.from({ length: 255 }, (_, code) => code + 1),
  env: { TERM: io.env['TERM'] ?? 'linux', PS1: `${name}# ` },
})

async function summary(
  store: ImageStore,
  { name, digest, manifest, isUnchanged, previous, lockFile }: BuiltImage,
  seconds: number,
): Promise<string[]> {
  const packed = artefactOf(manifest, 'squashfs') ?? artefactOf(manifest, 'cpio.zst') ?? artefactOf(manifest, 'cpio.gz')
  const sizes =
    packed === undefined ? humanSize(manifest.size) : `${humanSize(manifest.size)} → ${humanSize(packed.size)}`
  const change = isUnchanged
    ? 'unchanged'
    : previous === undefined
      ? 'first build'
      : await changeText(store, previous, manifest)
  return [
    `${name} ${shortDigest(digest)}  ${sizes}  ${change}  ${duration(seconds)}`,
    ...(lockFile === undefined ? [] : [`  lock written: commit images/${name}/lock.json`]),
  ]
}

async function changeText(store: ImageStore, previous: BuiltImage['digest'], manifest: Manifest): Promise<string> {
  const before = await store.manifest(previous).catch(() => undefined)
  if (before === undefined) return 'changed'
  const packages = diffPackages(await packagesOf(store, before), await packagesOf(store, manifest))
  const entries = await readChangedFiles(store, before, manifest)
  const files = diffFiles(entries.before, entries.after)
  const changed = packages.upgraded.length + packages.downgraded.length
  const count = files.added.length + files.removed.length + files.changed.length
  return `+${packages.added.length} −${packages.removed.length}${changed > 0 ? ` ±${changed}` : ''} packages, ${plural(count, 'file')} changed`
}

export async function exportTo({
  io,
  out,
  args: [reference = '', path = ''],
  options,
}: Call<DataOption & { format: ExportFormat }>): Promise<void> {
  const store = await imagesToRead(io, options)
  const image = await store.resolve(reference)
  if (options.format !== 'directory') await requireTools([['unsquashfs', 'squashfs-tools']])
  const to = resolve(io.cwd, path)
  await patiently(io, `exporting ${image.name}`, exportImage(store, image, options.format, to, io.interrupted))
  await out.result({ name: image.name, digest: image.digest, format: options.format, path: to }, () => [
    `${image.name} ${shortDigest(image.digest)} written to ${path}`,
  ])
}

interface ImportFlags extends DataOption {
  readonly tree?: string
  readonly tar?: string
  readonly oci?: string
  readonly squashfs?: string
  readonly kernel?: string
  readonly initrd?: string
  readonly arch?: 'amd64' | 'arm64'
}

export async function importFrom({ io, out, args: [name = '', dir], options }: Call<ImportFlags>): Promise<void> {
  const store = await imageStore(io, options)
  using progress = new Progress(io)
  const { digest, manifest } = await importImage({
    name,
    source: importSource(options, dir),
    arch: options.arch ?? thisMachine(),
    cwd: io.cwd,
    store,
    report: progress,
    signal: io.interrupted,
    ...(options.kernel !== undefined && { kernel: options.kernel }),
    ...(options.initrd !== undefined && { initrd: options.initrd }),
  })
  await out.result({ name: manifest.name, digest, manifest }, () => [
    `${manifest.name} ${shortDigest(digest)}  ${humanSize(manifest.size)}`,
  ])
}

function importSource(options: ImportFlags, dir: string | undefined): ImportSource {
  const kinds = (['tree', 'tar', 'oci', 'squashfs'] as const).filter(kind => options[kind] !== undefined)
  const [kind] = kinds
  if (kinds.length + (dir === undefined ? 0 : 1) !== 1)
    throw new MusterError(
      'USAGE',
      'say once what is imported: a directory made by export, or one of --tree, --tar, --oci, --squashfs',
    )
  return kind === undefined ? { kind: 'exported', path: dir ?? '' } : { kind, path: options[kind] ?? '' }
}

export async function shell(call: Call<DataOption & { network?: boolean }>): Promise<number> {
  const {
    io,
    options,
    args: [reference = ''],
  } = call
  const store = await imagesToRead(io, options)
  await requireTools([['unsquashfs', 'squashfs-tools']])
  const { manifest } = await store.resolve(reference)
  await using open = await patiently(io, `unpacking ${manifest.name}`, openTree(store, manifest, io.interrupted))
  const argv = call.rest.length > 0 ? call.rest : SHELL
  const network = options.network === true
  const { exitCode } = await inRoot(open.root, argv, { ...atTerminal(io, manifest.name), network })
  return exitCode
}
