import { createHash } from 'node:crypto'
import { readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { makeDirectory } from '../../lib/dirs.ts'
import { MusterError, messageOf } from '../../lib/errors.ts'
import { createPrivate, isErrno } from '../../state/files.ts'
import { type Digest, Manifest, manifestText } from '../manifest.ts'
import { type About, AboutFiles } from './about.ts'
import { BlobStore } from './blobs.ts'
import { type Collected, type CollectOptions, type Roots, collect } from './collect.ts'
import { blobsOf, hexOf, parseManifest } from './contents.ts'
import { explainDisk, seal, sizeOf } from './disk.ts'
import { type Listed, Names } from './names.ts'
import { type ImageName, findImage, shortName } from './reference.ts'
import { type Finding, type VerifyOptions, verifyImages } from './verify.ts'

export interface ImageEntry extends ImageName, Listed {}

export interface ResolvedImage extends ImageName {
  readonly manifest: Manifest
}

/** Larger than any manifest, small enough to be read at once. */
const MANIFEST_LIMIT = 4 * 2 ** 20

/** The images in a directory, which any number of processes may use at the same time. */
export async function openImageStore(dir: string, now: () => Date = () => new Date()): Promise<ImageStore> {
  try {
    await makeDirectory(dir, 0o700)
    for (const below of ['blobs/sha256', 'names', 'about', 'tmp']) await makeDirectory(join(dir, below), 0o700)
    await createPrivate(join(dir, 'lock'))
  } catch (error) {
    throw new MusterError('FILE_UNWRITABLE', `images cannot be kept in ${dir}: ${messageOf(error)}`, {
      hint: 'name a directory you may write to',
      cause: error,
    })
  }
  return new ImageStore(dir, now)
}

/** For those who only read: nothing is made, and where there is no such directory, there are no images. */
export async function peekImageStore(dir: string): Promise<ImageStore> {
  await readdir(join(dir, 'names')).catch((error: unknown) => {
    if (!isErrno(error, 'ENOENT')) throw error
  })
  return new ImageStore(dir, () => new Date())
}

/**
 * Images by name, in a directory:
 *
 *     blobs/sha256/ab/abcd…  content that never changes
 *     names/NAME.json        the images of that name, newest first
 *     about/abcd….json       signatures and test report of an image
 *     tmp/                   what is being written
 *     lock                   held while an image is published or removed, and while cleaning up
 */
export class ImageStore extends BlobStore {
  readonly #names: Names
  readonly #about: AboutFiles
  readonly #now: () => Date

  /** Of a directory that is prepared, or only read: see `openImageStore` and `peekImageStore`. */
  constructor(dir: string, now: () => Date) {
    super(dir)
    this.#names = new Names(join(dir, 'names'))
    this.#about = new AboutFiles(join(dir, 'about'))
    this.#now = now
  }

  names(): Promise<string[]> {
    return this.#names.all()
  }

  /** Newest first; none for a name nobody has. */
  async images(name: string): Promise<ImageEntry[]> {
    return (await this.#names.read(name)).map(listed => ({ name, ...listed }))
  }

  /** Of all names. */
  async list(): Promise<ImageEntry[]> {
    return (await Promise.all((await this.names()).map(name => this.images(name)))).flat()
  }

  async latest(name: string): Promise<ImageEntry | undefined> {
    return (await this.images(name))[0]
  }

  /** What a reference means (see `findImage`), without reading its manifest. */
  async find(reference: string): Promise<ImageEntry> {
    return (await this.latest(reference)) ?? findImage(await this.list(), reference)
  }

  async resolve(reference: string): Promise<ResolvedImage> {
    const { name, digest } = await this.find(reference)
    return { name, digest, manifest: await this.manifest(digest) }
  }

  /** The manifest of any image that is here, whether a name lists it or not. */
  async manifest(digest: Digest): Promise<Manifest> {
    const text = await this.read(hexOf(digest), MANIFEST_LIMIT).catch((error: unknown) => {
      if (!(error instanceof MusterError) || error.code !== 'BLOB_UNKNOWN') throw error
      throw new MusterError('IMAGE_UNKNOWN', `the manifest of ${digest} is not here`)
    })
    return parseManifest(digest, text)
  }

  /** Makes an image whose artefacts are all here the newest of its name. */
  async publish(manifest: Manifest): Promise<Digest> {
    const text = Buffer.from(manifestText(manifest))
    if (text.length > MANIFEST_LIMIT)
      throw new MusterError('REQUEST_INVALID', `a manifest of ${text.length} bytes is too large`)
    const sha256 = createHash('sha256').update(text).digest('hex')
    const digest: Digest = `sha256:${sha256}`
    const temporary = this.temporary()
    try {
      await writeFile(temporary, text, { flag: 'wx', mode: 0o600 })
      await seal(temporary, 0o444)
      await this.lock.run(async () => {
        await this.#checkWhole(manifest)
        await this.place(temporary, { sha256, size: text.length })
        const others = (await this.#names.read(manifest.name)).filter(listed => listed.digest !== digest)
        const { created, inputs } = manifest
        const newest = { digest, created, built: this.#now().toISOString(), inputs: inputs as Digest }
        await this.#names.write(manifest.name, [newest, ...others], this.temporary())
      })
      return digest
    } catch (error) {
      await rm(temporary, { force: true })
      throw explainDisk(error, this.dir)
    }
  }

  /** What became known of an image after it was built. */
  about(digest: Digest): Promise<About> {
    return this.#about.read(digest)
  }

  /** Adds to what is known of an image that is here. */
  describe(digest: Digest, change: (about: About) => About): Promise<About> {
    return this.lock.run(async () => {
      await this.manifest(digest)
      const about = change(await this.#about.read(digest))
      await this.#about.write(digest, about, this.temporary()).catch((error: unknown) => {
        throw explainDisk(error, this.dir)
      })
      return about
    })
  }

  /** Takes an image off the list of its name. Its content goes with the next `gc`. */
  remove(reference: string, roots: Roots): Promise<ImageName> {
    return this.lock.run(async () => {
      const { name, digest } = await this.find(reference)
      const use = roots.uses.get(digest)
      if (use !== undefined) throw new MusterError('IMAGE_IN_USE', `${shortName({ name, digest })} is in use by ${use}`)
      const others = (await this.#names.read(name)).filter(listed => listed.digest !== digest)
      await this.#names.write(name, others, this.temporary())
      return { name, digest }
    })
  }

  /** Removes blobs that no image needs and files that nobody finished. */
  gc(options: CollectOptions): Promise<Collected> {
    return this.lock.run(() => collect(this, options, this.#now()))
  }

  /** By how many listed images each blob is used; a manifest is a blob as well. */
  async references(): Promise<Map<string, number>> {
    const counts = new Map<string, number>()
    for (const { digest } of await this.list())
      for (const sha256 of blobsOf(digest, await this.manifest(digest)))
        counts.set(sha256, (counts.get(sha256) ?? 0) + 1)
    return counts
  }

  /** Reads every blob of one image, or of all, from end to end; one finding for each, good or bad. */
  async *verify(reference?: string, options: VerifyOptions = {}): AsyncGenerator<Finding> {
    yield* verifyImages(this, reference === undefined ? await this.list() : [await this.find(reference)], options)
  }

  async #checkWhole(manifest: Manifest): Promise<void> {
    const problems: string[] = []
    for (const { type, sha256, size } of manifest.artefacts) {
      const found = await sizeOf(this.pathOf(sha256))
      if (found === undefined) problems.push(`${type}: ${sha256} is missing`)
      else if (found !== size) problems.push(`${type}: ${sha256} has ${found} bytes, not ${size}`)
    }
    if (problems.length === 0) return
    throw new MusterError('IMAGE_INCOMPLETE', `${manifest.name} is not whole: ${problems[0]}`, { details: problems })
  }
}
