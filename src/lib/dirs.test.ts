import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { makeDirectory } from './dirs.ts'

let dir: string
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'muster-dirs-'))
})
afterAll(() => rm(dir, { recursive: true }))

test('makes what is missing, the last with its mode', async () => {
  await makeDirectory(join(dir, 'a/b/c'), 0o700)
  expect((await stat(join(dir, 'a/b/c'))).mode & 0o777).toBe(0o700)
})

test('is content with what is there', async () => {
  await makeDirectory(dir)
  expect((await stat(dir)).isDirectory()).toBe(true)
})

test('by several at once', async () => {
  const path = join(dir, 'd/e/f/g')
  await Promise.all(Array.from({ length: 20 }, () => makeDirectory(path)))
  expect((await stat(path)).isDirectory()).toBe(true)
})

test.each([
  ['below a file', 'file/x', 'ENOTDIR'],
  ['where nothing can be made', '/proc/muster/x', 'ENOENT'],
])('fails %s', async (_, path, code) => {
  await writeFile(join(dir, 'file'), '')
  await expect(makeDirectory(path.startsWith('/') ? path : join(dir, path))).rejects.toThrow(code)
})
