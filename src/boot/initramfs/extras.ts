import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { exec } from '../../lib/exec.ts'
import { exists } from '../../lib/dirs.ts'
import { archiveOf, type Item } from './archive.ts'
import { compressed } from './compress.ts'

/** Programs of this machine that tell a machine nobody knows more about itself: its neighbour switch, its BMC. */
const PROGRAMS = ['tcpdump', 'ipmitool'] as const
const PLACES = ['/usr/bin', '/usr/sbin', '/bin', '/sbin'] as const

export interface DiscoveryExtras {
  /** A second initramfs, to be loaded behind the one of an image. Every kernel can unpack it. */
  readonly archive: Buffer
  /** Which of the programs were here to be taken. */
  readonly programs: readonly string[]
}

/**
 * All of it lies below /extras and runs with the loader and the libraries there: nothing of the first initramfs is touched, and
 * nothing is taken from it.
 */
export async function discoveryExtras(): Promise<DiscoveryExtras> {
  const items: Item[] = []
  const programs: string[] = []
  for (const name of PROGRAMS) {
    const path = await placeOf(name)
    if (path === undefined) continue
    programs.push(name)
    items.push(...(await itemsOf(name, path)))
  }
  const archive = await compressed(archiveOf([{ path: 'extras', directory: true }, ...items]), 'gzip')
  return { archive, programs }
}

async function placeOf(name: string): Promise<string | undefined> {
  for (const dir of PLACES) if (await exists(`${dir}/${name}`)) return `${dir}/${name}`
  return undefined
}

async function itemsOf(name: string, path: string): Promise<Item[]> {
  const { loader, libraries } = parseLdd((await exec('ldd', [path])).stdout.toString())
  const start = `/extras/lib/${basename(loader)} --library-path /extras/lib /extras/programs/${name}`
  const taken = await Promise.all(
    [loader, ...libraries].map(async library => ({
      path: `extras/lib/${basename(library)}`,
      content: await readFile(library),
      mode: 0o755,
    })),
  )
  return [
    ...taken,
    { path: `extras/programs/${name}`, content: await readFile(path), mode: 0o755 },
    { path: `extras/bin/${name}`, content: `#!/bin/sh\nexec ${start} "$@"\n`, mode: 0o755 },
  ]
}

/** `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f…)`, and the loader with its path alone. */
export function parseLdd(text: string): { readonly loader: string; readonly libraries: readonly string[] } {
  const libraries = [...text.matchAll(/^\s+\S+ => (\/\S+) \(0x/gm)].map(([, path = '']) => path)
  const loader = /^\s+(\/\S+) \(0x/m.exec(text)?.[1] ?? ''
  return { loader, libraries }
}
