import { watch } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { exec } from '../lib/exec.ts'
import { type Lab, openLab } from './lab.ts'
import type { LabOptions } from './plan.ts'

/** A lab in a directory of its own, gone when the test is over. */
export async function temporaryLab(): Promise<Lab> {
  const dir = await mkdtemp(join(tmpdir(), 'muster-lab-'))
  const lab = await openLab(dir)
  onTestFinished(async () => {
    await lab.down()
    await rm(dir, { recursive: true, force: true })
  })
  return lab
}

export const fixture = (name: string): string => fileURLToPath(new URL(`fixtures/${name}.ts`, import.meta.url))

/** The server is a small one that says where it lives. */
export const labOptions = ({ dir }: Lab, more: Partial<LabOptions> = {}): LabOptions => ({
  nodes: [],
  firmware: 'bios',
  addresses: [{ cidr: '10.77.0.1/16' }],
  accelerator: 'tcg',
  server: { command: process.execPath, args: [fixture('server')], log: join(dir, 'server.log') },
  ...more,
})

export const NODE = { name: 'n001', mac: '52:54:00:77:00:01', memory: 256 } as const

/** Waits until a file says it: the file is read whenever it changes. */
export async function says(file: string, what: string | RegExp, from = 0): Promise<string> {
  await writeFile(file, '', { flag: 'a' })
  let changed = Promise.withResolvers<void>()
  const watcher = watch(file, () => changed.resolve())
  try {
    for (;;) {
      changed = Promise.withResolvers()
      const text = (await readFile(file, 'latin1')).slice(from)
      if (typeof what === 'string' ? text.includes(what) : what.test(text)) return text
      await changed.promise
    }
  } finally {
    watcher.close()
  }
}

/** As `ip -j …` says it, in a namespace. */
export async function ip<Row>(namespace: string, ...words: string[]): Promise<Row[]> {
  const { stdout } = await exec('ip', ['-n', namespace, '-j', ...words])
  return JSON.parse(stdout.toString('utf8')) as Row[]
}
