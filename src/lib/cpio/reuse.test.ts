import { truncateSync } from 'node:fs'
import { mkdtemp, rm, truncate } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { anyChange, treeOf, watched, words } from '../pack/testing.ts'
import type { Packed } from '../pack/packed.ts'
import type { FileEntry, FileTree } from '../tree/entry.ts'
import { writeCpio, type CpioOptions } from './write.ts'

let dir: string
let archives = 0
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'muster-cpio-reuse-'))
})
afterAll(() => rm(dir, { recursive: true }))

const write = (tree: FileTree, options: Partial<CpioOptions> = {}): Promise<Packed> =>
  writeCpio(tree, join(dir, `archive-${++archives}`), { compression: 'zstd', ...options })

const MIB = 1024 * 1024

/** A hundred files in several segments; one with another content than usual. */
const many = (changed?: number): FileTree =>
  treeOf(
    Array.from({ length: 100 }, (_, n) => ({
      path: `f${n}`,
      type: 'file',
      content: Buffer.alloc(MIB / 2 + n, words(5000, n === changed ? 1000 : n)),
    })),
    join(dir, 'contents'),
  )

test.each(['zstd', 'gzip'] as const)('%s: reads nothing when nothing has changed', async compression => {
  const first = await write(many(), { compression })
  const { tree, read } = watched(many())
  const second = await write(tree, { compression, reuse: [first] })
  expect(second).toEqual({ ...first, file: second.file })
  expect(read).toEqual([])
})

test.each([0, 50, 99])('reads only the segment in which file %i has changed', async changed => {
  const first = await write(many())
  const { tree, read } = watched(many(changed))
  expect((await write(tree, { reuse: [first] })).sha256).toBe((await write(many(changed))).sha256)
  expect(read).toContain(`f${changed}`)
  expect(read.length).toBeLessThanOrEqual(33)
})

test('takes from several', async () => {
  const [first, second] = [await write(many(0)), await write(many(99))]
  const { tree, read } = watched(many())
  expect((await write(tree, { reuse: [first, second] })).sha256).toBe((await write(many())).sha256)
  expect(read).toEqual([])
})

test.each([
  ['made with another level', () => {}, { level: 4 }],
  ['compressed in another way', () => {}, { compression: 'gzip' } as const],
  ['that is gone', (file: string) => rm(file), {}],
  ['that has become shorter', (file: string) => truncate(file, 500), {}],
])('does without one %s', async (_, spoil, options) => {
  const first = await write(many(), options)
  await spoil(first.file)
  const { tree, read } = watched(many())
  expect((await write(tree, { reuse: [first] })).sha256).toBe((await write(many())).sha256)
  expect(read).toHaveLength(100)
})

test('does without the rest of one that becomes shorter on the way', async () => {
  const first = await write(many())
  const given = many(0)
  const locate = (file: FileEntry): string => {
    if (file.path === 'f0') truncateSync(first.file, 500)
    return given.locate(file)
  }
  expect((await write({ ...given, locate }, { reuse: [first] })).sha256).toBe((await write(given)).sha256)
})

test('the bytes are the same with and without an earlier archive', async () => {
  const sizes = fc.oneof(fc.nat(20_000), fc.integer({ min: MIB / 2, max: 2 * MIB }), fc.constant(0))
  await fc.assert(
    fc.asyncProperty(anyChange(sizes, 40), async ([before, after]) => {
      const contents = join(dir, 'contents')
      const [first, second] = [await write(treeOf(before, contents)), await write(treeOf(after, contents))]
      expect((await write(treeOf(after, contents), { reuse: [first] })).sha256).toBe(second.sha256)
      expect((await write(treeOf(before, contents), { reuse: [second] })).sha256).toBe(first.sha256)
    }),
    { numRuns: 15 },
  )
})
