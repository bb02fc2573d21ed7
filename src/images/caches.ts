import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { exists } from '../lib/dirs.ts'
import { exec } from '../lib/exec.ts'
import type { ImageStore } from './store/store.ts'

export interface PrunedCaches {
  readonly layers: Pruned
  readonly packages: Pruned
}

interface Pruned {
  readonly count: number
  readonly bytes: number
}

/**
 * Gives back what only makes builds faster: layers and downloaded packages that no build used since `before`, and notes
 * about packs and logs of builds whose images are gone.
 */
export async function pruneCaches(store: ImageStore, before: Date, dryRun: boolean): Promise<PrunedCaches> {
  const layers = await pruneIn(join(store.dir, 'layers'), before, dryRun)
  const packages = { count: 0, bytes: 0 }
  for (const shard of await namesIn(join(store.dir, 'packages'))) {
    const { count, bytes } = await pruneIn(join(store.dir, 'packages', shard), before, dryRun)
    packages.count += count
    packages.bytes += bytes
  }
  if (!dryRun) await forgetGone(store)
  return { layers, packages }
}

async function pruneIn(dir: string, before: Date, dryRun: boolean): Promise<Pruned> {
  let count = 0
  let bytes = 0
  for (const name of await namesIn(dir)) {
    const path = join(dir, name)
    const info = await stat(path).catch(() => undefined)
    if (info === undefined || info.mtime >= before) continue
    count++
    bytes += info.isDirectory() ? await diskUse(path) : info.size
    if (!dryRun) await rm(path, { recursive: true, force: true })
  }
  return { count, bytes }
}

async function diskUse(dir: string): Promise<number> {
  const { stdout } = await exec('du', ['--summarize', '--bytes', dir], { timeout: 0 })
  return Number.parseInt(stdout.toString('utf8'), 10)
}

async function forgetGone(store: ImageStore): Promise<void> {
  for (const name of await namesIn(join(store.dir, 'indexes')))
    if (!(await exists(store.pathOf(name.replace(/\.json$/, ''))))) await rm(join(store.dir, 'indexes', name))
  for (const image of await namesIn(join(store.dir, 'logs'))) {
    const listed = new Set((await store.images(image)).map(({ digest }) => `${digest.slice('sha256:'.length)}.log`))
    const logs = await namesIn(join(store.dir, 'logs', image))
    for (const log of logs) if (log !== 'last.log' && !listed.has(log)) await rm(join(store.dir, 'logs', image, log))
  }
}

const namesIn = (dir: string): Promise<string[]> => readdir(dir).catch(() => [])
