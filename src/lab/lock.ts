import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { makeDirectory } from '../lib/dirs.ts'
import { MusterError } from '../lib/errors.ts'
import { tryLock } from '../state/lock.ts'

const LOOK_AGAIN = 50

/** One at a time changes a lab, among all processes. The lock ends with its owner, however that ends. */
export async function withLabLock<Result>(dir: string, patience: number, work: () => Promise<Result>): Promise<Result> {
  using _ = await acquire(dir, patience)
  return await work()
}

async function acquire(dir: string, patience: number): Promise<Disposable> {
  await makeDirectory(dir, 0o700)
  const deadline = performance.now() + patience
  for (;;) {
    const lock = await tryLock(join(dir, 'lock'))
    if (lock !== undefined) return lock
    if (performance.now() >= deadline) throw new MusterError('LAB_BUSY', `${dir}: another muster is changing this lab`)
    await pause(LOOK_AGAIN)
  }
}
