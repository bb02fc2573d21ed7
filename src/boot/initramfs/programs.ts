import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { exists } from '../../lib/dirs.ts'
import { exec } from '../../lib/exec.ts'
import type { Item } from './archive.ts'

const PLACES = ['/usr/bin', '/usr/sbin', '/bin', '/sbin'] as const

export async function findProgram(name: string): Promise<string | undefined> {
  for (const dir of PLACES) if (await exists(`${dir}/${name}`)) return `${dir}/${name}`
  return undefined
}

/**
 * A program of this machine with the loader and the libraries it runs with, all below a directory of its own: nothing else in an
 * initramfs is touched, and nothing is taken from it. It is called by the name in DIR/bin.
 */
export async function programItems(name: string, path: string, dir: string): Promise<Item[]> {
  const { loader, libraries } = parseLdd((await exec('ldd', [path])).stdout.toString())
  const start = `/${dir}/lib/${basename(loader)} --library-path /${dir}/lib /${dir}/programs/${name}`
  const taken = await Promise.all(
    [loader, ...libraries].map(async library => ({
      path: `${dir}/lib/${basename(library)}`,
      content: await readFile(library),
      mode: 0o755,
    })),
  )
  return [
    ...taken,
    { path: `${dir}/programs/${name}`, content: await readFile(path), mode: 0o755 },
    { path: `${dir}/bin/${name}`, content: `#!/bin/sh\nexec ${start} "$@"\n`, mode: 0o755 },
  ]
}

/** `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f…)`, and the loader with its path alone. */
export function parseLdd(text: string): { readonly loader: string; readonly libraries: readonly string[] } {
  const libraries = [...text.matchAll(/^\s+\S+ => (\/\S+) \(0x/gm)].map(([, path = '']) => path)
  const loader = /^\s+(\/\S+) \(0x/m.exec(text)?.[1] ?? ''
  return { loader, libraries }
}
