import { createHash, randomUUID } from 'node:crypto'
import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { makeDirectory } from '../dirs.ts'
import { MusterError } from '../errors.ts'
import { writeTar } from '../tar/write.ts'
import type { FileTree } from '../tree/entry.ts'
import { addBlob, addJson, type Descriptor } from './blobs.ts'
import { BlockGzip } from './gzip.ts'

const INDEX = 'application/vnd.oci.image.index.v1+json'
const MANIFEST = 'application/vnd.oci.image.manifest.v1+json'
const CONFIG = 'application/vnd.oci.image.config.v1+json'
// Not zstd: umoci, Charliecloud and podman of some years ago read gzip only.
const LAYER = 'application/vnd.oci.image.layer.v1.tar+gzip'

export interface OciOptions {
  readonly arch: 'amd64' | 'arm64'
  /** ISO time: nothing in the image comes from the clock. */
  readonly created: string
  readonly labels: Readonly<Record<string, string>>
  readonly tag: string
  /** What runs when nobody says what to run. */
  readonly cmd?: readonly string[]
  readonly signal?: AbortSignal
}

/**
 * Writes a tree as an OCI image with one layer, in a directory as the image-layout specification has it, for podman,
 * skopeo, umoci and whatever else runs containers. The directory appears when it is complete.
 */
export async function writeOciLayout(
  tree: FileTree,
  dir: string,
  options: OciOptions,
): Promise<{ manifestDigest: string }> {
  await refuseUsed(dir)
  refuseWhiteouts(tree)
  const target = resolve(dir)
  const temporary = join(dirname(target), `.${basename(target)}.${randomUUID()}`)
  try {
    await makeDirectory(dirname(target))
    await mkdir(temporary)
    const manifest = await writeImage(tree, temporary, options)
    await rename(temporary, target)
    return { manifestDigest: manifest.digest }
  } catch (error) {
    await rm(temporary, { recursive: true, force: true })
    throw error
  }
}

async function refuseUsed(dir: string): Promise<void> {
  const names = await readdir(dir).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw new MusterError('FILE_UNWRITABLE', `${dir} cannot be used: ${error.message}`, { cause: error })
  })
  if (names.length > 0)
    throw new MusterError('FILE_UNWRITABLE', `${dir} is not empty`, { hint: 'name a directory that is not there yet' })
}

/** In a layer, '.wh.NAME' means that NAME is gone: such a file would not arrive, and might take another with it. */
function refuseWhiteouts(tree: FileTree): void {
  const found = tree.entries.find(entry => basename(entry.path).startsWith('.wh.'))
  if (found !== undefined)
    throw new MusterError('ARCHIVE_INVALID', `${found.path}: a container image cannot hold a file of this name`)
}

async function writeImage(tree: FileTree, layout: string, options: OciOptions): Promise<Descriptor> {
  const { arch, created, labels, tag, cmd } = options
  await makeDirectory(join(layout, 'blobs/sha256'))
  const { layer, diffId } = await addLayer(tree, layout, options.signal)
  const config = await addJson(layout, CONFIG, {
    created,
    architecture: arch,
    os: 'linux',
    config: { ...(cmd && { Cmd: cmd }), Labels: sortKeys(labels) },
    rootfs: { type: 'layers', diff_ids: [diffId] },
    history: [{ created, created_by: 'muster' }],
  })
  const manifest = await addJson(layout, MANIFEST, { schemaVersion: 2, mediaType: MANIFEST, config, layers: [layer] })
  const entry = {
    ...manifest,
    annotations: { 'org.opencontainers.image.ref.name': tag },
    platform: { architecture: arch, os: 'linux' },
  }
  const index = { schemaVersion: 2, mediaType: INDEX, manifests: [entry] }
  await writeFile(join(layout, 'index.json'), JSON.stringify(index), { flush: true })
  await writeFile(join(layout, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }), { flush: true })
  return manifest
}

/** Stored by the digest of its compressed bytes; the image itself names it by that of the tar archive within. */
async function addLayer(
  tree: FileTree,
  layout: string,
  signal: AbortSignal | undefined,
): Promise<{ layer: Descriptor; diffId: string }> {
  const hash = createHash('sha256')
  const layer = await addBlob(layout, LAYER, async write => {
    const compressed = new BlockGzip(write)
    const take = async (chunk: Buffer): Promise<void> => {
      hash.update(chunk)
      await compressed.write(chunk)
    }
    await writeTar(tree, take, signal ? { signal } : {})
    await compressed.end()
  })
  return { layer, diffId: `sha256:${hash.digest('hex')}` }
}

const sortKeys = (labels: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1)))
