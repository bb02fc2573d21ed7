import { copyFile, readFile, readdir, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { exists } from '../lib/dirs.ts'
import { MusterError } from '../lib/errors.ts'
import type { BaseFacts, PinnedBase } from './build/bases/base.ts'
import { directoryBase } from './build/bases/directory.ts'
import { ociBase } from './build/bases/oci.ts'
import { unpackSquashfs } from './build/bases/stored.ts'
import { tarBase } from './build/bases/tar.ts'
import { assembleImage } from './build/assemble.ts'
import { hashFile } from './store/disk.ts'
import { digestOf } from './build/inputs.ts'
import { LayerMaker } from './build/make.ts'
import type { BuildReport } from './build/report.ts'
import { requireTools } from './build/tools.ts'
import { openWorkDir } from './build/workdir.ts'
import { FILE_NAMES, REPORT_FILE, SIGNATURE_FILE } from './export.ts'
import { NAME } from '../site/values.ts'
import { LayerCache } from './layers/cache.ts'
import { type Artefact, type ArtefactType, type Digest, Manifest } from './manifest.ts'
import { type About, mergeAbout } from './store/about.ts'
import type { ImageStore } from './store/store.ts'
import { Signature } from './trust/signatures.ts'

/** What can become an image without a recipe. */
export type ImportSource =
  | { readonly kind: 'exported'; readonly path: string }
  | { readonly kind: 'tree' | 'tar' | 'oci'; readonly path: string }
  | { readonly kind: 'squashfs'; readonly path: string }

export interface ImportOptions {
  readonly name: string
  readonly source: ImportSource
  readonly kernel?: string
  readonly initrd?: string
  readonly arch: string
  readonly cwd: string
  readonly store: ImageStore
  readonly report: BuildReport
  readonly signal: AbortSignal
}

/** Gives what was built elsewhere a manifest, so that it can be booted, compared and built upon like our own. */
export async function importImage(options: ImportOptions): Promise<{ digest: Digest; manifest: Manifest }> {
  if (!NAME.test(options.name))
    throw new MusterError('USAGE', `${JSON.stringify(options.name)} is not a name for an image`, {
      hint: 'lower-case letters, digits, - and _',
    })
  if (options.source.kind !== 'exported') {
    const manifest = await assemble(options)
    return { digest: await options.store.publish(manifest), manifest }
  }
  const { manifest, about } = await readExported(options)
  const digest = await options.store.publish(manifest)
  await options.store.describe(digest, known => mergeAbout(known, about))
  return { digest, manifest }
}

/** A directory of `muster image export`: every file is held against the manifest before anything is published. */
async function readExported({
  store,
  source,
  cwd,
  name,
}: ImportOptions): Promise<{ manifest: Manifest; about: About }> {
  const dir = resolve(cwd, source.path)
  const text = await readFile(join(dir, 'manifest.json'), 'utf8').catch((error: unknown) => {
    throw new MusterError('ARCHIVE_INVALID', `${source.path} holds no manifest.json`, {
      cause: error,
      hint: 'name a directory made by muster image export, or say what it is: --tree, --tar, --oci, --squashfs',
    })
  })
  const parsed = Manifest.safeParse(jsonOf(text))
  if (!parsed.success) throw new MusterError('ARCHIVE_INVALID', `${source.path}/manifest.json is no manifest of ours`)
  if (parsed.data.name !== name)
    throw new MusterError('USAGE', `${source.path} is the image ${parsed.data.name}, not ${name}`, {
      hint: `its name is part of its digest: muster image import ${parsed.data.name} …`,
    })
  for (const { type, sha256 } of parsed.data.artefacts) {
    const blob = await adoptFile(store, join(dir, FILE_NAMES[type]))
    if (blob.sha256 !== sha256)
      throw new MusterError('DIGEST_MISMATCH', `${FILE_NAMES[type]} is ${blob.sha256}, its manifest says ${sha256}`, {
        hint: 'it was damaged on the way: copy it again',
      })
  }
  return { manifest: parsed.data, about: await readAbout(store, dir) }
}

/** What was known of it there: whether its signatures are worth something is for whoever asks for them to say. */
async function readAbout(store: ImageStore, dir: string): Promise<About> {
  const seen = new Date().toISOString()
  const signatures: About['signatures'] = []
  for (const name of (await readdir(dir)).sort()) {
    const key = SIGNATURE_FILE.exec(name)?.[1]
    if (key === undefined) continue
    const bytes = await readFile(join(dir, name))
    const signature = Signature.safeParse({ key, signature: bytes.toString('base64'), seen })
    if (!signature.success) throw new MusterError('ARCHIVE_INVALID', `${name} is no signature`)
    signatures.push(signature.data)
  }
  if (!(await exists(join(dir, REPORT_FILE)))) return { signatures }
  return { signatures, report: await adoptFile(store, join(dir, REPORT_FILE)) }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const adoptFile = (store: ImageStore, file: string): Promise<{ sha256: string; size: number }> =>
  store.writeBlob(temporary =>
    copyFile(file, temporary).catch((error: unknown) => {
      throw new MusterError('ARCHIVE_INVALID', `${file} cannot be read`, { cause: error, hint: 'check the path' })
    }),
  )

async function assemble(options: ImportOptions): Promise<Manifest> {
  await requireTools()
  const { store, name, report, signal, arch } = options
  const base = await baseOf(options)
  const time = await timeOf(options)
  const pin = await base.pin()
  const stage = base.stage(pin)
  const key = digestOf(['import', time, stage.title, stage.inputs])
  await using work = await openWorkDir(join(store.dir, 'work'))
  const layers = await LayerCache.open(join(store.dir, 'layers'))
  const maker = new LayerMaker({ layers, work: work.path, report, signal })
  const stages = [{ ...stage, key, image: name, time }]
  const given = await givenArtefacts(options)
  const manifest = await assembleImage({
    about: {
      name,
      arch,
      inputs: `sha256:${digestOf({ name, arch, key, given })}`,
      created: new Date(time * 1000).toISOString().replace('.000Z', 'Z'),
    },
    base: undefined,
    recipe: { outputs: ['squashfs', 'cpio.zst'], kernel: undefined, limits: {} },
    layers: await maker.layersOf(stages),
    stages,
    time,
    earlier: [],
    given,
    work: join(work.path, 'image'),
    anchors: { keys: [] },
    store,
    report,
    signal,
  })
  await layers.flush()
  return manifest
}

function baseOf(options: ImportOptions): Promise<PinnedBase> {
  const facts: BaseFacts = {
    recipeDir: options.cwd,
    image: options.name,
    arch: options.arch,
    sandbox: { signal: options.signal },
  }
  const { kind, path } = options.source
  if (kind === 'tar') return tarBase(facts, path)
  if (kind === 'oci') return ociBase(facts, path)
  if (kind === 'tree') return directoryBase(facts, path)
  return squashfsBase(resolve(options.cwd, path))
}

async function squashfsBase(file: string): Promise<PinnedBase> {
  const { sha256 } = await hashFile(file).catch((error: unknown) => {
    throw new MusterError('ARCHIVE_INVALID', `${file} cannot be read`, { cause: error, hint: 'check the path' })
  })
  return {
    request: { squashfs: sha256 },
    pin: () => Promise.resolve(sha256),
    stage: () => ({
      title: 'from squashfs',
      inputs: { squashfs: sha256, isKeptWhole: true },
      // The squashfs becomes part of the image as it is; the list of files says what is in it.
      isKeptWhole: true,
      make: ({ upper, sandbox }) => unpackSquashfs(file, upper, sandbox),
    }),
  }
}

/** Of the file or directory itself: importing the same thing twice gives the same image. */
async function timeOf({ source, cwd }: ImportOptions): Promise<number> {
  const path = source.kind === 'oci' ? source.path.replace(/^[a-z-]+:/, '').replace(/:[^:/]*$/, '') : source.path
  const info = await stat(resolve(cwd, path)).catch(() => undefined)
  return Math.floor((info?.mtimeMs ?? 0) / 1000)
}

async function givenArtefacts({ store, source, kernel, initrd, cwd }: ImportOptions): Promise<Artefact[]> {
  const files: (readonly [ArtefactType, string | undefined])[] = [
    ['kernel', kernel],
    ['initrd', initrd],
    ['squashfs', source.kind === 'squashfs' ? source.path : undefined],
  ]
  const found: Artefact[] = []
  for (const [type, path] of files)
    if (path !== undefined) found.push({ type, ...(await adoptFile(store, resolve(cwd, path))) })
  return found
}
