/** Container images written by hand, also such as no tool would write. */
import { createHash } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { arch } from 'node:process'
import { gzipSync } from 'node:zlib'

interface Descriptor {
  readonly mediaType: string
  readonly digest: string
  readonly size: number
  readonly annotations?: Readonly<Record<string, string>>
}

const digestOf = (bytes: Uint8Array): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`

const type = (what: string): string => `application/vnd.oci.image.${what}`
const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value))

/** Adds an image of these layers (tar archives) to a layout, which is made if need be. */
export async function writeImage(layout: string, tag: string, layers: readonly Uint8Array[]): Promise<void> {
  await mkdir(join(layout, 'blobs/sha256'), { recursive: true })
  await writeFile(join(layout, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}')
  const put = async (mediaType: string, bytes: Uint8Array): Promise<Descriptor> => {
    const digest = digestOf(bytes)
    await writeFile(join(layout, 'blobs', digest.replace(':', '/')), bytes)
    return { mediaType, digest, size: bytes.length }
  }
  const packed: Descriptor[] = []
  for (const layer of layers) packed.push(await put(type('layer.v1.tar+gzip'), gzipSync(layer)))
  const rootfs = { type: 'layers', diff_ids: layers.map(digestOf) }
  const config = await put(
    type('config.v1+json'),
    json({ architecture: arch === 'arm64' ? 'arm64' : 'amd64', os: 'linux', config: {}, rootfs }),
  )
  const manifest = await put(type('manifest.v1+json'), json({ schemaVersion: 2, config, layers: packed }))
  const file = join(layout, 'index.json')
  const known = await readFile(file, 'utf8').then(
    text => (JSON.parse(text) as { manifests: Descriptor[] }).manifests,
    () => [],
  )
  const named = { ...manifest, annotations: { 'org.opencontainers.image.ref.name': tag } }
  await writeFile(file, JSON.stringify({ schemaVersion: 2, manifests: [...known, named] }))
}

/** The one blob of a layout that is this layer, as it lies there. */
export const layerFile = (layout: string, layer: Uint8Array): string =>
  join(layout, 'blobs', digestOf(gzipSync(layer)).replace(':', '/'))
