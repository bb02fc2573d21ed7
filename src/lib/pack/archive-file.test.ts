import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ArchiveFile, BLOCK, alignedBuffers } from './archive-file.ts'
import { noise } from './testing.ts'

const SIZE = 64 * 1024

/** Mostly. A tmpfs takes nothing past the page cache, or takes it in its own way. */
describe.for([
  ['a disk', tmpdir()],
  ['a tmpfs', '/dev/shm'],
] as const)('a file on %s', ([, place]) => {
  const inDir = async (work: (file: string) => Promise<void>): Promise<void> => {
    const dir = await mkdtemp(join(place, 'muster-archive-'))
    try {
      await work(join(dir, 'archive'))
    } finally {
      await rm(dir, { recursive: true })
    }
  }

  it.for([0, 1, BLOCK - 1, BLOCK, BLOCK + 1, SIZE, 3 * SIZE + 17])('of %d bytes is what was written', length =>
    inDir(async path => {
      const content = noise(length, 1)
      const [buffer = Buffer.alloc(0)] = alignedBuffers(1, SIZE)
      await using file = await ArchiveFile.create(path)
      for (let at = 0; at < length; at += SIZE) {
        const part = content.subarray(at, at + SIZE)
        buffer.set(part)
        await file.write(buffer.subarray(0, part.length), at)
      }
      expect((await readFile(path)).equals(content)).toBe(true)
      expect(await file.size()).toBe(length)
    }),
  )

  it('is read from any block on', () =>
    inDir(async path => {
      const content = noise(3 * SIZE + 17, 2)
      await writeFile(path, content)
      const [buffer = Buffer.alloc(0)] = alignedBuffers(1, SIZE)
      await using file = await ArchiveFile.open(path)
      for (const at of [0, BLOCK, 3 * SIZE, 3 * SIZE + BLOCK]) {
        const length = await file.read(buffer, at)
        expect(buffer.subarray(0, length).equals(content.subarray(at, at + SIZE))).toBe(true)
      }
    }))

  it('may be written over in the middle, and is read as it then is', () =>
    inDir(async path => {
      const [one = Buffer.alloc(0), other = Buffer.alloc(0)] = alignedBuffers(2, SIZE)
      one.fill('a')
      await using file = await ArchiveFile.create(path)
      await file.write(one, 0)
      await file.overwrite(Buffer.from('here'), 96)
      await file.read(other, 0)
      expect(other.toString('latin1', 94, 102)).toBe('aahereaa')
    }))

  it('that is there is not written over', () =>
    inDir(async path => {
      await writeFile(path, 'mine')
      await expect(ArchiveFile.create(path)).rejects.toMatchObject({ code: 'EEXIST' })
      expect(await readFile(path, 'utf8')).toBe('mine')
    }))
})
