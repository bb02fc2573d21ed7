import { truncateSync } from 'node:fs'
import { mkdtemp, rm, truncate } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { anyChange, treeOf, watched, words } from '../pack/testing.ts'
import type { Packed, SquashfsIndex } from '../pack/packed.ts'
import type { FileEntry, FileTree } from '../tree/entry.ts'
import { writeSquashfs, type SquashfsOptions } from './write.ts'

let dir: string
let images = 0
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'muster-squashfs-reuse-'))
})
afterAll(() => rm(dir, { recursive: true }))

const write = (tree: FileTree, options: Partial<SquashfsOptions> = {}): Promise<Packed> =>
  writeSquashfs(tree, join(dir, `image-${++images}`), { time: 1_700_000_000, ...options })

/** Sixty files, every fifth of them large; one with another content than usual. */
const many = (changed?: number): FileTree =>
  treeOf(
    Array.from({ length: 60 }, (_, n) => ({
      path: `f${n}`,
      type: 'file',
      content: words(n % 5 === 0 ? 300_000 + n : 9000 + n * 100, n === changed ? 1000 : n),
    })),
    join(dir, 'contents'),
  )

test('reads nothing when nothing has changed', async () => {
  const first = await write(many())
  const { tree, read } = watched(many())
  expect((await write(tree, { reuse: [first] })).sha256).toBe(first.sha256)
  expect(read).toEqual([])
})

test('says the same about what it took over', async () => {
  const first = await write(many())
  const second = await write(many(), { reuse: [first] })
  expect(second).toEqual({ ...first, file: second.file })
})

test('reads only a large file that has changed', async () => {
  const first = await write(many())
  const { tree, read } = watched(many(20))
  expect((await write(tree, { reuse: [first] })).sha256).toBe((await write(many(20))).sha256)
  expect(read).toEqual(['f20'])
})

test('reads only the neighbours of a small file that has changed', async () => {
  const first = await write(many())
  const { tree, read } = watched(many(23))
  expect((await write(tree, { reuse: [first] })).sha256).toBe((await write(many(23))).sha256)
  expect(read).toContain('f23')
  expect(read.length).toBeLessThan(15)
})

test('takes from several', async () => {
  const [first, second] = [await write(many(3)), await write(many(7))]
  const { tree, read } = watched(many())
  expect((await write(tree, { reuse: [first, second] })).sha256).toBe((await write(many())).sha256)
  expect(read).toEqual([])
})

test.each([
  ['made with another level', () => {}, 4],
  ['that is gone', (file: string) => rm(file), 3],
  ['that has become shorter', (file: string) => truncate(file, 5000), 3],
  ['that has become longer', (file: string) => truncate(file, 50_000_000), 3],
])('does without one %s', async (_, spoil, level) => {
  const first = await write(many(), { level })
  await spoil(first.file)
  const { tree, read } = watched(many())
  expect((await write(tree, { reuse: [first] })).sha256).toBe((await write(many())).sha256)
  expect(read).toHaveLength(60)
})

test('does without the rest of one that becomes shorter on the way', async () => {
  const first = await write(many())
  const given = many(0)
  const locate = (file: FileEntry): string => {
    if (file.path === 'f0') truncateSync(first.file, 100_000)
    return given.locate(file)
  }
  expect((await write({ ...given, locate }, { reuse: [first] })).sha256).toBe((await write(given)).sha256)
})

test.each([
  ['beyond the end', (size: number) => ({ offset: size - 5, blocks: [9, 9, 9] })],
  ['too large for a block', () => ({ offset: 96, blocks: [131_073, 9, 9] })],
  ['of fewer blocks than the file has', () => ({ offset: 96, blocks: [9, 9] })],
])('does without what an index says about data %s', async (_, place) => {
  const first = await write(many())
  const large = many().entries.find(entry => entry.type === 'file')
  const { offset, blocks } = place(first.size)
  const index: SquashfsIndex = {
    format: 'squashfs',
    recipe: first.index.recipe,
    contents: [[large?.sha256 ?? '', offset, blocks]],
    fragments: [],
  }
  expect((await write(many(), { reuse: [{ ...first, index }] })).sha256).toBe(first.sha256)
})

test('the bytes are the same with and without an earlier image', async () => {
  const BLOCK = 131_072
  const sizes = fc.oneof(
    { weight: 5, arbitrary: fc.nat(60_000) },
    { weight: 2, arbitrary: fc.integer({ min: 60_000, max: 3 * BLOCK }) },
    fc.constantFrom(0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK),
  )
  await fc.assert(
    fc.asyncProperty(anyChange(sizes, 40), async ([before, after]) => {
      const contents = join(dir, 'contents')
      const [first, second] = [await write(treeOf(before, contents)), await write(treeOf(after, contents))]
      expect((await write(treeOf(after, contents), { reuse: [first] })).sha256).toBe(second.sha256)
      expect((await write(treeOf(before, contents), { reuse: [second] })).sha256).toBe(first.sha256)
    }),
    { numRuns: 40 },
  )
})
