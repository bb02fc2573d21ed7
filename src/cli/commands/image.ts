import { join } from 'node:path'
import { parseDuration } from '../../lib/duration.ts'
import { MusterError } from '../../lib/errors.ts'
import { humanSize } from '../../lib/size.ts'
import { type PrunedCaches, pruneCaches } from '../../images/caches.ts'
import { CHANNEL, channelsIn } from '../../images/moves.ts'
import { contentOf, packagesOf } from '../../images/content.ts'
import { type ImageDifference, diffImages } from '../../images/diff.ts'
import { readFileList } from '../../images/file-list.ts'
import { largest, largestText } from '../../images/largest.ts'
import { readBuildLog } from '../../images/logs.ts'
import { ARTEFACT_TYPES, type ArtefactType, type Manifest, artefactOf } from '../../images/manifest.ts'
import { rootsOf } from '../../images/roots.ts'
import type { Collected, Roots } from '../../images/store/collect.ts'
import type { ImageStore } from '../../images/store/store.ts'
import type { Finding } from '../../images/store/verify.ts'
import { peekEntries, peekObserved } from '../../state/peek.ts'
import { confirm, patiently } from '../ask.ts'
import type { Call } from '../define.ts'
import { type DataOption, dataDir, imageStore, imagesToRead, shortDigest } from '../images.ts'
import type { Io } from '../io.ts'
import { ago, plural, table } from '../output.ts'

export async function ls({ io, out, args: [name], options }: Call<DataOption & { all?: boolean }>): Promise<void> {
  const store = await imagesToRead(io, options)
  const names = name === undefined ? await store.names() : [name]
  const listed = (await Promise.all(names.map(one => store.images(one)))).flatMap(images =>
    options.all === true ? images : images.slice(0, 1),
  )
  if (name !== undefined && listed.length === 0) await store.resolve(name)
  const items = await Promise.all(
    listed.map(async image => ({ ...image, manifest: await store.manifest(image.digest) })),
  )
  const now = new Date()
  await out.result(items, () => {
    if (items.length === 0) return ['no images yet: muster image build NAME']
    return table(
      ['NAME', 'DIGEST', 'BUILT', 'SIZE', 'ROOT', 'OS', 'KERNEL'],
      items.map(({ name: image, digest, built, manifest }) => [
        image,
        shortDigest(digest),
        ago(built, now),
        humanSize(manifest.size),
        rootSize(manifest),
        manifest.os === undefined ? '-' : [manifest.os.id, manifest.os.version].filter(Boolean).join(' '),
        manifest.kernel?.version ?? '-',
      ]),
    )
  })
}

function rootSize(manifest: Manifest): string {
  const root = (['squashfs', 'cpio.zst', 'cpio.gz', 'erofs'] as const)
    .map(type => artefactOf(manifest, type))
    .find(Boolean)
  return root === undefined ? '-' : humanSize(root.size)
}

interface ShowFlags extends DataOption {
  readonly packages?: boolean
  readonly largest?: boolean
  readonly path?: string
}

export async function show({ io, out, args: [reference = ''], options }: Call<ShowFlags>): Promise<void> {
  const store = await imagesToRead(io, options)
  const { name, digest, manifest } = await store.resolve(reference)
  if (options.path !== undefined) return out.line(pathOf(store, manifest, options.path))
  if (options.packages === true) {
    const packages = await packagesOf(store, manifest)
    return out.result(packages, () =>
      table(
        ['PACKAGE', 'VERSION', 'ARCH', 'SIZE'],
        packages.map(one => [one.name, one.version, one.arch, humanSize(one.size)]),
      ),
    )
  }
  if (options.largest === true) {
    const found = largest(await packagesOf(store, manifest), await readFileList(store, manifest))
    return out.result(found, () => largestText(found).trimEnd().split('\n'))
  }
  const references = await store.references()
  const { signatures } = await store.about(digest)
  await out.result({ digest, ...manifest, signatures }, () => [
    `${out.style('bold', name)} ${digest}`,
    ...(manifest.source === undefined
      ? []
      : [
          `from     commit ${manifest.source.commit}${manifest.source.dirty ? ' with changes' : ''}${manifest.source.branch === undefined ? '' : `, branch ${manifest.source.branch}`}`,
        ]),
    ...(manifest.base === undefined ? [] : [`base     ${manifest.base.name} ${shortDigest(manifest.base.inputs)}`]),
    `created  ${manifest.created}`,
    `system   ${[manifest.os?.name ?? '-', manifest.arch, ...(manifest.kernel === undefined ? [] : [`kernel ${manifest.kernel.version}`])].join(', ')}`,
    `size     ${humanSize(manifest.size)}`,
    `signed   ${signatures.length === 0 ? 'by nobody' : `by ${signatures.map(({ key }) => key).join(', ')}`}`,
    '',
    ...table(
      ['ARTEFACT', 'SIZE', 'SHA256', 'IMAGES'],
      manifest.artefacts.map(({ type, size, sha256 }) => [
        type,
        humanSize(size),
        sha256,
        String(references.get(sha256) ?? 0),
      ]),
    ),
  ])
}

function pathOf(store: ImageStore, manifest: Manifest, type: string): string {
  const artefact = (ARTEFACT_TYPES as readonly string[]).includes(type)
    ? artefactOf(manifest, type as ArtefactType)
    : undefined
  if (artefact === undefined)
    throw new MusterError('USAGE', `${manifest.name} has no ${type}`, {
      hint: `it has ${manifest.artefacts.map(one => one.type).join(', ')}`,
    })
  return store.pathOf(artefact.sha256)
}

export async function log({ io, out, args: [reference = ''], options }: Call<DataOption>): Promise<void> {
  const store = await imagesToRead(io, options)
  const last = await readBuildLog(store.dir, reference).catch(() => undefined)
  const text = last ?? (await logOfImage(store, reference))
  await out.result({ log: text }, () => [text.trimEnd()])
}

async function logOfImage(store: ImageStore, reference: string): Promise<string> {
  const { name, digest } = await store.find(reference)
  return readBuildLog(store.dir, name, digest)
}

export async function diff({
  io,
  out,
  args: [before = '', after],
  options,
}: Call<DataOption & { files?: boolean; exitCode?: boolean }>): Promise<number> {
  const store = await imagesToRead(io, options)
  const a = await store.resolve(before)
  const b = await store.resolve(after ?? a.name)
  const [left, right] = await patiently(
    io,
    'comparing',
    Promise.all([contentOf(store, a.manifest), contentOf(store, b.manifest)]),
  )
  const difference = diffImages(left, right)
  await out.result({ before: a.digest, after: b.digest, ...difference }, () =>
    differenceLines(difference, options.files === true),
  )
  return options.exitCode === true && a.manifest.tree !== b.manifest.tree ? 1 : 0
}

function differenceLines({ packages, files, size }: ImageDifference, all: boolean): string[] {
  const packageRows = [
    ...packages.added.map(one => ['+', one.name, '', one.version]),
    ...packages.removed.map(one => ['−', one.name, one.version, '']),
    ...packages.upgraded.map(one => ['↑', one.after.name, one.before.version, one.after.version]),
    ...packages.downgraded.map(one => ['↓', one.after.name, one.before.version, one.after.version]),
  ]
  const count = files.added.length + files.removed.length + files.changed.length
  const fileRows = [
    ...files.added.map(one => ['+', `/${one.path}`, '']),
    ...files.removed.map(one => ['−', `/${one.path}`, '']),
    ...files.changed.map(one => ['±', `/${one.path}`, one.what.join(', ')]),
  ]
  const few = all || count <= FEW
  const grown = size.directories.filter(one => one.delta !== 0)
  return [
    ...(packageRows.length === 0 ? ['packages  the same'] : table(['', 'PACKAGE', 'BEFORE', 'AFTER'], packageRows)),
    '',
    `files     ${files.added.length} added, ${files.removed.length} removed, ${files.changed.length} changed${few ? '' : '   (--files lists them)'}`,
    ...(few && count > 0 ? table(['', 'FILE', 'WHAT'], fileRows) : []),
    '',
    `size      ${humanSize(size.before)} → ${humanSize(size.after)}  (${signed(size.delta)})`,
    ...(grown.length === 0
      ? []
      : table(
          ['DIRECTORY', 'BEFORE', 'AFTER', ''],
          grown.map(one => [`/${one.path}`, humanSize(one.before), humanSize(one.after), signed(one.delta)]),
        )),
  ]
}

const FEW = 20
const signed = (bytes: number): string => `${bytes < 0 ? '−' : '+'}${humanSize(Math.abs(bytes))}`

export async function verify({
  io,
  out,
  args: [reference],
  options,
}: Call<DataOption & { discard?: boolean }>): Promise<number> {
  const store = await imagesToRead(io, options)
  const findings: Finding[] = []
  const read = async (): Promise<void> => {
    for await (const finding of store.verify(reference, { discard: options.discard === true })) findings.push(finding)
  }
  await patiently(io, 'reading every byte', read())
  const bad = findings.filter(({ problem }) => problem !== undefined)
  await out.result(findings, () => [
    ...bad.map(
      ({ name, digest, type, sha256, problem }) => `${name}@${shortDigest(digest)}: ${type} ${sha256}: ${problem}`,
    ),
    bad.length === 0
      ? `${plural(findings.length, 'artefact')} as they should be`
      : `${bad.length} of ${plural(findings.length, 'artefact')} damaged`,
  ])
  return bad.length === 0 ? 0 : 1
}

export async function rm({
  io,
  out,
  args: [reference = ''],
  options,
}: Call<DataOption & { yes?: boolean }>): Promise<void> {
  const store = await imagesToRead(io, options)
  const { name, digest } = await store.find(reference)
  await confirm(io, `remove ${name} ${shortDigest(digest)}?`, options.yes)
  await store.remove(digest, await rootsFor(io, options))
  await out.result({ name, digest }, () => [
    `${name} ${shortDigest(digest)} removed; muster image gc gives its space back`,
  ])
}

async function rootsFor(io: Io, options: DataOption): Promise<Roots> {
  const state = join(dataDir(io, options), 'state.db')
  return rootsOf(await peekObserved(state), channelsIn(await peekEntries(state, CHANNEL)))
}

export async function gc({
  io,
  out,
  options,
}: Call<DataOption & { dryRun?: boolean; unused: string; grace: string }>): Promise<void> {
  const store = await imageStore(io, options)
  const dryRun = options.dryRun === true
  const grace = milliseconds(options.grace, '--grace')
  const unused = new Date(Date.now() - milliseconds(options.unused, '--unused'))
  const work = async (): Promise<{ blobs: Collected; caches: PrunedCaches }> => ({
    blobs: await store.gc({ roots: await rootsFor(io, options), grace, dryRun }),
    caches: await pruneCaches(store, unused, dryRun),
  })
  const { blobs, caches } = await patiently(io, 'looking for what nobody needs', work())
  const verb = dryRun ? 'would be removed' : 'removed'
  const lines = [
    [plural(blobs.removed.length, 'artefact'), blobs.bytes] as const,
    [plural(caches.layers.count, 'layer'), caches.layers.bytes] as const,
    [plural(caches.packages.count, 'downloaded package'), caches.packages.bytes] as const,
  ]
  await out.result({ removed: blobs.removed, kept: blobs.kept, bytes: blobs.bytes, ...caches, dryRun }, () =>
    lines.map(([what, bytes]) => `${what} ${verb}, ${humanSize(bytes)}`),
  )
}

function milliseconds(text: string, flag: string): number {
  const time = parseDuration(text)
  if (time === undefined) throw new MusterError('USAGE', `${flag}: ${text} is not a time such as 30m, 1h or 14d`)
  return time
}
