import { readFile, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { MusterError, messageOf } from '../../lib/errors.ts'
import { isErrno, sync } from '../../state/files.ts'
import { Digest, Manifest } from '../manifest.ts'
import { explainDisk, moveInto, seal, sizeOf } from './disk.ts'

/** One image as the list of its name has it. */
const Listed = z.strictObject({
  digest: Digest.transform(text => text as Digest),
  created: Manifest.shape.created,
  built: z.iso.datetime(),
  inputs: Digest.transform(text => text as Digest),
})
export type Listed = Readonly<z.infer<typeof Listed>>

const List = z.strictObject({ images: z.array(Listed) })
const FILE = /^(.+)\.json$/
const LARGEST = 64 * 2 ** 20

/** The lists of images by name, newest first: `names/NAME.json`. A name whose last image is removed is gone. */
export class Names {
  readonly #dir: string

  constructor(dir: string) {
    this.#dir = dir
  }

  async all(): Promise<string[]> {
    const files = await readdir(this.#dir).catch((error: unknown) => {
      if (isErrno(error, 'ENOENT')) return []
      throw error
    })
    const names = files.map(file => FILE.exec(file)?.[1] ?? '')
    return names.filter(isName).sort()
  }

  /** Empty for a name nobody has. */
  async read(name: string): Promise<readonly Listed[]> {
    if (!isName(name)) return []
    const file = this.#fileOf(name)
    const size = await sizeOf(file)
    if (size === undefined) return []
    try {
      if (size > LARGEST) throw new Error(`${size} bytes are too many`)
      return List.parse(JSON.parse(await readFile(file, 'utf8'))).images
    } catch (error) {
      if (isErrno(error, 'ENOENT')) return []
      throw new MusterError('IMAGE_DAMAGED', `${file}: ${messageOf(error)}`, {
        cause: error,
        hint: 'bring this file back from a backup, or remove it and publish the images again',
      })
    }
  }

  /** The temporary file must be on the same disk. */
  async write(name: string, images: readonly Listed[], temporary: string): Promise<void> {
    const target = this.#fileOf(name)
    try {
      if (images.length === 0) {
        await rm(target, { force: true })
        await sync(this.#dir)
        return
      }
      await writeFile(temporary, `${JSON.stringify({ images }, null, 2)}\n`, { flag: 'wx', mode: 0o600 })
      await seal(temporary, 0o600)
      await moveInto(temporary, target)
    } catch (error) {
      await rm(temporary, { force: true })
      throw explainDisk(error, this.#dir)
    }
  }

  #fileOf(name: string): string {
    return join(this.#dir, `${name}.json`)
  }
}

const isName = (name: string): boolean => Manifest.shape.name.safeParse(name).success
