import { exec } from '../../src/lib/exec.ts'
import { temporaryDir } from '../world.ts'

export interface PackedBench {
  readonly seconds: number
  /** The most the process ever had. */
  readonly megabytes: number
}

/** Packs a tree in a process of its own, with the memory settings bin/muster has; see pack.ts. */
export async function packInProcess(tree: string): Promise<PackedBench> {
  await using to = await temporaryDir()
  const program = new URL('./pack.ts', import.meta.url).pathname
  const memory = ['--max-semi-space-size=16', '--no-concurrent-marking', '--no-incremental-marking']
  const flags = ['--disable-warning=ExperimentalWarning', ...memory]
  const { stdout } = await exec(process.execPath, [...flags, program, tree, to.path], { timeout: 0 })
  return JSON.parse(stdout.toString('utf8')) as PackedBench
}
