import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { writeCpio } from '../../lib/cpio/write.ts'
import { makeDirectory } from '../../lib/dirs.ts'
import { type Packed, parseIndex } from '../../lib/pack/packed.ts'
import { writeSquashfs } from '../../lib/squashfs/write.ts'
import type { FileTree } from '../../lib/tree/entry.ts'
import type { Recipe } from '../../site/recipe.ts'
import { type Artefact, type Manifest, artefactOf } from '../manifest.ts'
import type { ImageStore } from '../store/store.ts'
import { type Overlay, withTool } from './sandbox.ts'

type Form = Recipe['outputs'][number]

export interface PackOptions {
  readonly store: ImageStore
  /** Directory of what is known about the inside of earlier packs. */
  readonly indexes: string
  /** Images to take unchanged parts from. */
  readonly earlier: readonly Manifest[]
  readonly time: number
  readonly signal: AbortSignal
  /** The tree mounted, for tools that need it so. */
  readonly overlay: Overlay
}

/** Writes the root in every form that is asked for, all at once; what earlier packs hold already is copied from them. */
export async function packRoot(tree: FileTree, forms: readonly Form[], options: PackOptions): Promise<Artefact[]> {
  return Promise.all(forms.map(form => packForm(tree, form, options)))
}

async function packForm(tree: FileTree, form: Form, options: PackOptions): Promise<Artefact> {
  const { store, time, signal, overlay } = options
  const file = store.temporary()
  try {
    if (form === 'erofs') {
      await writeErofs(file, time, overlay, signal)
      const blob = await store.adopt(file)
      return { type: form, ...blob }
    }
    const reuse = await earlierPacks(form, options)
    const packed =
      form === 'squashfs'
        ? await writeSquashfs(tree, file, { time, reuse, signal })
        : await writeCpio(tree, file, { compression: form === 'cpio.zst' ? 'zstd' : 'gzip', reuse, signal })
    const blob = await store.adopt(file, { sha256: packed.sha256, size: packed.size })
    await makeDirectory(options.indexes)
    await writeFile(indexFile(options, packed.sha256), JSON.stringify(packed.index))
    return { type: form, ...blob }
  } catch (error) {
    await rm(file, { force: true })
    throw error
  }
}

const indexFile = ({ indexes }: PackOptions, sha256: string): string => join(indexes, `${sha256}.json`)

async function earlierPacks(form: Form, options: PackOptions): Promise<Packed[]> {
  const found: Packed[] = []
  for (const manifest of options.earlier) {
    const artefact = artefactOf(manifest, form)
    if (artefact === undefined || found.some(({ sha256 }) => sha256 === artefact.sha256)) continue
    const text = await readFile(indexFile(options, artefact.sha256), 'utf8').catch(() => undefined)
    const index = text === undefined ? undefined : parseIndex(parsed(text))
    if (index !== undefined)
      found.push({ file: options.store.pathOf(artefact.sha256), size: artefact.size, sha256: artefact.sha256, index })
  }
  return found
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** mkfs.erofs 1.5 gives all files one time; that is the price of the same bytes every time. */
async function writeErofs(file: string, time: number, overlay: Overlay, signal: AbortSignal): Promise<void> {
  const uuid = '00000000-0000-4000-8000-000000000000'
  await writeFile(file, '', { flag: 'wx', mode: 0o600 })
  await withTool(overlay, ['mkfs.erofs', '-zlz4hc', `-T${time}`, `-U${uuid}`, '/run/root.erofs', '/target'], {
    writable: { '/run/root.erofs': file },
    signal,
  })
}
