import { createHash, randomUUID } from 'node:crypto'
import { open, rename } from 'node:fs/promises'
import { join } from 'node:path'

/** How OCI documents point at one another. */
export interface Descriptor {
  readonly mediaType: string
  readonly digest: string
  readonly size: number
}

/** Stores what `fill` writes under its digest, which is known only afterwards. */
export async function addBlob(
  layout: string,
  mediaType: string,
  fill: (write: (chunk: Buffer) => Promise<void>) => Promise<void>,
): Promise<Descriptor> {
  const blobs = join(layout, 'blobs/sha256')
  const temporary = join(blobs, randomUUID())
  const hash = createHash('sha256')
  let size = 0
  {
    await using file = await open(temporary, 'wx')
    await fill(async chunk => {
      hash.update(chunk)
      size += chunk.length
      await file.writeFile(chunk)
    })
    await file.sync()
  }
  const hex = hash.digest('hex')
  await rename(temporary, join(blobs, hex))
  return { mediaType, digest: `sha256:${hex}`, size }
}

export const addJson = (layout: string, mediaType: string, value: unknown): Promise<Descriptor> =>
  addBlob(layout, mediaType, write => write(Buffer.from(JSON.stringify(value))))
