import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** One place for all files of tests: what the first has built, the others find. Named by whoever writes tests, it stays. */
export default async function setup(): Promise<(() => Promise<void>) | undefined> {
  if (process.env['MUSTER_E2E_DIR'] !== undefined) return undefined
  const dir = await mkdtemp(join(tmpdir(), 'muster-e2e-'))
  process.env['MUSTER_E2E_DIR'] = dir
  return () => rm(dir, { recursive: true, force: true })
}
