import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { StoreLock } from './lock.ts'

const directory = () => mkdtempDisposable(join(tmpdir(), 'muster-lock-'))

describe('the lock of a store', () => {
  it('lets one at a time work, whether they share an object or not', async () => {
    await using temporary = await directory()
    const file = join(temporary.path, 'lock')
    const [one, other] = [new StoreLock(file), new StoreLock(file)]
    let [inside, most, done] = [0, 0, 0]
    const work = async (): Promise<void> => {
      most = Math.max(most, ++inside)
      await new Promise(resolve => setImmediate(resolve))
      inside--
      done++
    }
    await Promise.all(Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? one : other).run(work)))
    expect({ most, done }).toEqual({ most: 1, done: 20 })
  })

  it('is free again after a failure, and gives what the work gives', async () => {
    await using temporary = await directory()
    const file = join(temporary.path, 'lock')
    const failing = new StoreLock(file).run(() => Promise.reject(new Error('broken')))
    await expect(failing).rejects.toThrow('broken')
    expect(await new StoreLock(file).run(async () => 42)).toBe(42)
  })

  it('is not waited for without end', async () => {
    await using temporary = await directory()
    const file = join(temporary.path, 'lock')
    await new StoreLock(file).run(async () => {
      await expect(new StoreLock(file, 0).run(async () => 'never')).rejects.toMatchObject({
        code: 'STATE_LOCKED',
        message: `${file}: another muster has been changing the images for too long`,
        hint: 'try again when it is done, or stop it',
      })
    })
  })
})
