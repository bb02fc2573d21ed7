import { copyFile, mkdir, open, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { exists, makeDirectory } from '../lib/dirs.ts'
import { MusterError } from '../lib/errors.ts'
import { writeOciLayout } from '../lib/oci/layout.ts'
import { writeTar } from '../lib/tar/write.ts'
import { type ArtefactType, type Digest, type Manifest, manifestText } from './manifest.ts'
import { openTree } from './open-tree.ts'
import type { ImageStore, ResolvedImage } from './store/store.ts'

/** What each artefact is called outside the store. */
export const FILE_NAMES: Readonly<Record<ArtefactType, string>> = {
  kernel: 'kernel',
  initrd: 'initrd',
  'cpio.zst': 'root.cpio.zst',
  'cpio.gz': 'root.cpio.gz',
  squashfs: 'root.squashfs',
  erofs: 'root.erofs',
  files: 'files.jsonl.zst',
  packages: 'packages.json',
  sbom: 'sbom.spdx.json',
  log: 'build.log',
  lock: 'lock.json',
}

/** The 64 bytes, as openssl wants them. */
export const signatureFile = (key: string): string => `manifest.${key}.sig`
export const SIGNATURE_FILE = /^manifest\.([0-9a-f]{16})\.sig$/
export const REPORT_FILE = 'tests.json'

export const EXPORT_FORMATS = ['directory', 'oci', 'tar'] as const
export type ExportFormat = (typeof EXPORT_FORMATS)[number]

/** Writes an image for somebody else: appears whole or not at all, and never over something that is there. */
export async function exportImage(
  store: ImageStore,
  image: ResolvedImage,
  format: ExportFormat,
  to: string,
  signal: AbortSignal,
): Promise<void> {
  const target = resolve(to)
  await makeDirectory(dirname(target))
  if (format === 'directory') return exportDirectory(store, image, target)
  await using open = await openTree(store, image.manifest, signal)
  if (format === 'tar') {
    // Awaited here: the tree is gone when this function returns.
    await exportTar(open.tree, target, signal)
    return
  }
  const { arch, created } = image.manifest
  await writeOciLayout(open.tree, target, {
    arch,
    created,
    tag: 'latest',
    labels: labelsOf(image.manifest, image.digest),
    cmd: ['/bin/sh'],
    signal,
  })
}

const labelsOf = ({ name, created, source, inputs }: Manifest, digest: Digest): Record<string, string> => ({
  'org.opencontainers.image.title': name,
  'org.opencontainers.image.created': created,
  ...(source && { 'org.opencontainers.image.revision': source.commit }),
  'muster.image.digest': digest,
  'muster.image.inputs': inputs,
})

/** Plain files under plain names, with checksums: for another boot server, or to be carried to another site. */
async function exportDirectory(store: ImageStore, { manifest, digest }: ResolvedImage, target: string): Promise<void> {
  const temporary = `${target}.new-${process.pid}`
  await mkdir(temporary)
  try {
    const sums: string[] = []
    for (const { type, sha256 } of manifest.artefacts) {
      await copyFile(store.pathOf(sha256), join(temporary, FILE_NAMES[type]))
      sums.push(`${sha256}  ${FILE_NAMES[type]}\n`)
    }
    await writeFile(join(temporary, 'manifest.json'), manifestText(manifest))
    const { signatures, report } = await store.about(digest)
    for (const { key, signature } of signatures)
      await writeFile(join(temporary, signatureFile(key)), Buffer.from(signature, 'base64'))
    if (report !== undefined) {
      await copyFile(store.pathOf(report.sha256), join(temporary, REPORT_FILE))
      sums.push(`${report.sha256}  ${REPORT_FILE}\n`)
    }
    await writeFile(join(temporary, 'SHA256SUMS'), sums.join(''))
    // Onto an empty directory it works, onto a full one it does not.
    await rename(temporary, target)
  } catch (error) {
    await rm(temporary, { recursive: true, force: true })
    if (['ENOTEMPTY', 'EEXIST', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? ''))
      throw new MusterError('FILE_UNWRITABLE', `${target} is not empty`, {
        cause: error,
        hint: 'name a directory that is not there yet',
      })
    throw error
  }
}

async function exportTar(tree: Parameters<typeof writeTar>[0], target: string, signal: AbortSignal): Promise<void> {
  if (await exists(target))
    throw new MusterError('FILE_UNWRITABLE', `${target} is there already`, {
      hint: 'name a file that is not there yet',
    })
  const temporary = `${target}.new-${process.pid}`
  const handle = await open(temporary, 'wx')
  try {
    await writeTar(tree, async chunk => void (await handle.write(chunk)), { signal })
    await handle.close()
    await rename(temporary, target)
  } catch (error) {
    await handle.close().catch(() => {})
    await rm(temporary, { force: true })
    throw error
  }
}
