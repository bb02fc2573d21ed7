import { randomUUID } from 'node:crypto'
import { mkdir, readFile, rename, rm, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { exists, makeDirectory } from '../../lib/dirs.ts'
import { exec } from '../../lib/exec.ts'
import type { StackedLayer } from './merge.ts'
import { type LayerContent, scanLayer } from './scan.ts'

/**
 * Finished stages of builds, by the digest of everything that went into them: DATA/images/layers/KEY/{root,layer.json}.
 * A cache: anything in it can be built again. What a power failure may have cut short is thrown away.
 */
export class LayerCache {
  readonly #dir: string
  readonly #bootId: string
  readonly #fresh: string[] = []

  private constructor(dir: string, bootId: string) {
    this.#dir = dir
    this.#bootId = bootId
  }

  static async open(dir: string): Promise<LayerCache> {
    await makeDirectory(dir, 0o700)
    return new LayerCache(dir, (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim())
  }

  async find(key: string): Promise<StackedLayer | undefined> {
    const dir = this.#pathOf(key)
    const text = await readFile(join(dir, 'layer.json'), 'utf8').catch(() => undefined)
    if (text === undefined) return undefined
    const layer = parsed(text)
    const isSafe = layer !== undefined && (layer.bootId === this.#bootId || (await exists(join(dir, 'on-disk'))))
    if (layer === undefined || !isSafe) {
      await rm(dir, { recursive: true, force: true })
      return undefined
    }
    // The time of last use, for gc.
    const now = new Date()
    await utimes(dir, now, now)
    return { ...layer.content, root: join(dir, 'root') }
  }

  /** Lists what a stage left in `root` and keeps it under the key; `root` is moved. */
  async keep(key: string, root: string, time: number, signal?: AbortSignal): Promise<StackedLayer> {
    const content = await scanLayer(root, time, signal)
    const dir = this.#pathOf(key)
    const temporary = join(this.#dir, `new-${process.pid}-${randomUUID()}`)
    await mkdir(temporary, { mode: 0o700 })
    await rename(root, join(temporary, 'root'))
    await writeFile(
      join(temporary, 'layer.json'),
      JSON.stringify({ bootId: this.#bootId, content } satisfies StoredLayer),
    )
    await rename(temporary, dir).catch(async (error: unknown) => {
      // Another build was quicker: its layer is as good as this one.
      if ((error as NodeJS.ErrnoException).code !== 'ENOTEMPTY') throw error
      if (await exists(join(dir, 'layer.json'))) return rm(temporary, { recursive: true, force: true })
      await rm(dir, { recursive: true, force: true })
      await rename(temporary, dir)
    })
    this.#fresh.push(dir)
    return { ...content, root: join(dir, 'root') }
  }

  /** Everything kept so far is on the disk when this is done, and will be there after a power failure. */
  async flush(): Promise<void> {
    if (this.#fresh.length === 0) return
    await exec('sync', ['--file-system', this.#dir], { timeout: 0 })
    for (const dir of this.#fresh.splice(0)) await writeFile(join(dir, 'on-disk'), '').catch(() => {})
  }

  #pathOf = (key: string): string => join(this.#dir, key.slice(0, 32))
}

interface StoredLayer {
  readonly bootId: string
  readonly content: LayerContent
}

/** Undefined for what a power failure left of it. */
function parsed(text: string): StoredLayer | undefined {
  try {
    return JSON.parse(text) as StoredLayer
  } catch {
    return undefined
  }
}
