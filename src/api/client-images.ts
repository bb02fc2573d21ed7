import type { Readable } from 'node:stream'
import { MusterError, messageOf } from '../lib/errors.ts'
import { type Digest, Manifest } from '../images/manifest.ts'
import type { About } from '../images/store/about.ts'
import type { Blob } from '../images/store/disk.ts'
import type { ImageName } from '../images/store/reference.ts'
import type { ImageSource, ImageTarget } from '../images/transfer.ts'
import type { ApiClient } from './client.ts'
import type { ImageItem } from './schemas.ts'

/** The images of a server, to be pulled from it and pushed to it. */
export class RemoteImages implements ImageSource, ImageTarget {
  readonly #client: ApiClient

  constructor(client: ApiClient) {
    this.#client = client
  }

  async list(): Promise<readonly ImageName[]> {
    const { items } = await this.#client.get<{ items: ImageItem[] }>('/api/v1/images')
    return items.map(({ name, digest }) => ({ name, digest: digest as Digest }))
  }

  async manifest({ name, digest }: ImageName): Promise<Manifest> {
    const reply = await this.#client.get(`/api/v1/images/${name}/${digest}`)
    try {
      return Manifest.parse(reply)
    } catch (error) {
      throw new MusterError('INTERNAL', `the server has a manifest that this muster does not understand`, {
        hint: 'is it of another version?',
        cause: error,
      })
    }
  }

  async *download({ sha256 }: Blob, offset: number, signal?: AbortSignal): AsyncGenerator<Buffer> {
    try {
      for await (const chunk of await this.#client.stream(`/api/v1/blobs/${sha256}`, offset, signal))
        yield chunk as Buffer
    } catch (error) {
      if (error instanceof MusterError) throw error
      if (signal?.aborted === true) throw new MusterError('ABORTED', 'interrupted')
      throw new MusterError('SERVER_UNREACHABLE', `the connection broke: ${messageOf(error)}`, { cause: error })
    }
  }

  async missing(digests: readonly string[]): Promise<readonly string[]> {
    const reply = await this.#client.send<{ digests: string[] }>('POST', '/api/v1/blobs/missing', { digests })
    return reply.digests
  }

  upload({ sha256, size }: Blob, content: Readable, signal?: AbortSignal): Promise<void> {
    return this.#client.upload(`/api/v1/blobs/${sha256}`, content, size, signal)
  }

  about({ name, digest }: ImageName): Promise<About> {
    return this.#client.get<About>(`/api/v1/images/${name}/${digest}/about`)
  }

  async describe({ name, digest }: ImageName, about: About): Promise<void> {
    await this.#client.send('PUT', `/api/v1/images/${name}/${digest}/about`, about)
  }

  async publish(manifest: Manifest): Promise<Digest> {
    const reply = await this.#client.send<{ digest: Digest }>('PUT', `/api/v1/images/${manifest.name}`, manifest)
    return reply.digest
  }
}
