import { createHash } from 'node:crypto'
import { open, stat } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Logger } from 'pino'
import { parseRange } from '../lib/range.ts'

/** Where the bytes of a digest lie. */
export interface Blobs {
  pathOf(sha256: string): string
}

const CHUNK = 2 ** 20
/** Of a file that is sent from the disk; every download has two of them. */
const PART = 2 ** 19

/**
 * Kernels, initramfses and roots by digest. What is asked for is kept in memory as long as there is room, the longest unused
 * goes first; and nothing is sent before its digest has been found right once.
 */
export class Artefacts {
  readonly #blobs: Blobs
  readonly #logger: Logger
  readonly #budget: number
  /** In the order they were last used. */
  readonly #hot = new Map<string, Buffer>()
  #held = 0
  readonly #loading = new Map<string, Promise<Loaded>>()
  /** Too large to be kept: found right at this state of its file. */
  readonly #checked = new Map<string, string>()
  #sent = 0

  constructor(blobs: Blobs, options: { readonly logger: Logger; readonly budget: number }) {
    this.#blobs = blobs
    this.#logger = options.logger
    this.#budget = options.budget
  }

  /** Bytes sent so far. */
  get sent(): number {
    return this.#sent
  }

  async send(sha256: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const hot = this.#hot.get(sha256)
    const loaded: Loaded = hot === undefined ? await this.#load(sha256) : { kind: 'memory', bytes: hot }
    if (hot !== undefined) this.#touch(sha256, hot)
    // Reading it may have taken a while.
    if (response.destroyed) return
    if (loaded.kind === 'missing' || loaded.kind === 'damaged') {
      const [status, words] = PROBLEMS[loaded.kind]
      response.writeHead(status, { 'content-type': 'text/plain', 'retry-after': '10' }).end(words)
      return
    }
    const size = loaded.kind === 'memory' ? loaded.bytes.length : loaded.size
    const headers: Record<string, string | number> = {
      etag: `"${sha256}"`,
      'cache-control': 'public, max-age=31536000, immutable',
      'accept-ranges': 'bytes',
      'content-type': 'application/octet-stream',
    }
    if (request.headers['if-none-match'] === `"${sha256}"`) {
      response.writeHead(304, headers).end()
      return
    }
    const { range: wanted, 'if-range': unless } = request.headers
    const range = parseRange(unless === undefined || unless === `"${sha256}"` ? wanted : undefined, size)
    if (range === 'unsatisfiable') {
      response.writeHead(416, { ...headers, 'content-range': `bytes */${size}` }).end()
      return
    }
    const { start, end } = range ?? { start: 0, end: size - 1 }
    headers['content-length'] = end - start + 1
    if (range !== undefined) headers['content-range'] = `bytes ${start}-${end}/${size}`
    response.writeHead(range === undefined ? 200 : 206, headers)
    if (request.method === 'HEAD' || size === 0) {
      response.end()
      return
    }
    this.#sent += end - start + 1
    if (loaded.kind === 'memory') response.end(loaded.bytes.subarray(start, end + 1))
    else await stream(loaded.path, start, end, response)
  }

  /** Brings it to memory before anybody asks. */
  async warm(sha256: string): Promise<void> {
    if (!this.#hot.has(sha256)) await this.#load(sha256)
  }

  #touch(sha256: string, bytes: Buffer): void {
    this.#hot.delete(sha256)
    this.#hot.set(sha256, bytes)
  }

  /** However many ask at once, it is read once. */
  #load(sha256: string): Promise<Loaded> {
    let loading = this.#loading.get(sha256)
    if (loading === undefined) {
      loading = this.#read(sha256).finally(() => this.#loading.delete(sha256))
      this.#loading.set(sha256, loading)
    }
    return loading
  }

  async #read(sha256: string): Promise<Loaded> {
    const path = this.#blobs.pathOf(sha256)
    const found = await stat(path).catch(() => undefined)
    if (found === undefined) return { kind: 'missing' }
    const state = `${found.ino} ${found.size} ${found.mtimeMs}`
    const keep = found.size <= this.#budget / 2
    if (!keep && this.#checked.get(sha256) === state) return { kind: 'file', path, size: found.size }
    const bytes = keep ? Buffer.allocUnsafeSlow(found.size) : undefined
    const digest = await digestOf(path, found.size, bytes)
    if (digest !== sha256) {
      this.#logger.error({ sha256, path }, 'artefact is damaged: it is not sent')
      return { kind: 'damaged' }
    }
    if (bytes === undefined) {
      this.#checked.set(sha256, state)
      return { kind: 'file', path, size: found.size }
    }
    this.#held += bytes.length
    this.#hot.set(sha256, bytes)
    for (const [other, its] of this.#hot) {
      if (this.#held <= this.#budget) break
      if (other === sha256) continue
      this.#hot.delete(other)
      this.#held -= its.length
    }
    return { kind: 'memory', bytes }
  }
}

type Loaded =
  | { readonly kind: 'memory'; readonly bytes: Buffer }
  | { readonly kind: 'file'; readonly path: string; readonly size: number }
  | { readonly kind: 'missing' }
  | { readonly kind: 'damaged' }

const PROBLEMS = {
  missing: [
    404,
    'error: this boot server does not have it\nhint: it may still be on its way; ask again, or another server\n',
  ],
  damaged: [503, 'error: what lies here has another digest\nhint: muster image verify on the server says more\n'],
} as const

async function digestOf(path: string, size: number, into?: Buffer): Promise<string> {
  const hash = createHash('sha256')
  await using handle = await open(path, 'r')
  const scratch = into === undefined ? Buffer.allocUnsafe(CHUNK) : undefined
  for (let at = 0; at < size;) {
    const target = into?.subarray(at, at + CHUNK) ?? scratch ?? Buffer.alloc(0)
    const { bytesRead } = await handle.read(target, 0, Math.min(target.length, size - at), at)
    if (bytesRead === 0) break
    hash.update(target.subarray(0, bytesRead))
    at += bytesRead
  }
  return hash.digest('hex')
}

/**
 * Whoever leaves in the middle comes back with a Range. One part is read while the other is sent, always into the same two
 * buffers: fresh ones for every part would cost as much again as sending them.
 */
async function stream(path: string, start: number, end: number, response: ServerResponse): Promise<void> {
  await using handle = await open(path, 'r')
  const buffers = [Buffer.allocUnsafeSlow(PART), Buffer.allocUnsafeSlow(PART)] as const
  let sending = Promise.resolve()
  try {
    for (let at = start, turn = 0; at <= end; turn++) {
      const { buffer, bytesRead } = await handle.read(
        buffers[turn % 2 === 0 ? 0 : 1],
        0,
        Math.min(PART, end - at + 1),
        at,
      )
      await sending
      if (bytesRead === 0) throw new Error(`${path} is shorter than it was`)
      at += bytesRead
      sending = write(response, buffer.subarray(0, bytesRead))
      // Whoever leaves does so while the next part is being read.
      sending.catch(() => {})
    }
    await sending
    response.end()
  } catch {
    response.destroy()
  }
}

const write = (response: ServerResponse, bytes: Buffer): Promise<void> =>
  new Promise((resolve, reject) => {
    response.write(bytes, error => (error === null || error === undefined ? resolve() : reject(error)))
  })
