import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { commitAll, directoryOf, git, isolateGit, repositoryOf, writeFiles } from '../../site/testing.ts'
import { sourceOf } from './source.ts'

beforeAll(() => {
  isolateGit()
  vi.stubEnv('GIT_AUTHOR_DATE', '2001-01-01T00:00:00Z')
})

const at = (time: string): unknown => vi.stubEnv('GIT_COMMITTER_DATE', time)

/** Two images, each changed by a commit of its own; then something else. */
async function history(folder = ''): Promise<{ dir: string; first: string; gpu: string }> {
  at('2026-03-01T12:00:00Z')
  const dir = await repositoryOf({
    [`${folder}images/base/image.yaml`]: 'from: { tar: a }\n',
    [`${folder}images/gpu/image.yaml`]: 'from: { image: base }\n',
    'README.md': 'hello\n',
  })
  const first = await git(dir, 'rev-parse', 'HEAD')
  at('2026-03-02T13:14:15+01:00')
  await writeFiles(dir, { [`${folder}images/gpu/image.yaml`]: 'from: { image: base }\narch: amd64\n' })
  const gpu = await commitAll(dir, 'gpu')
  at('2026-03-03T00:00:00Z')
  await writeFiles(dir, { 'README.md': 'hello again\n' })
  await commitAll(dir, 'readme')
  return { dir, first, gpu }
}

test('the last commit that changed the inputs, not the last of all', async () => {
  const { dir, first, gpu } = await history()
  expect(await sourceOf(dir, ['images/base'])).toEqual({
    source: { commit: first, branch: 'main', dirty: false },
    time: '2026-03-01T12:00:00Z',
  })
  expect(await sourceOf(dir, ['images/gpu'])).toEqual({
    source: { commit: gpu, branch: 'main', dirty: false },
    time: '2026-03-02T12:14:15Z',
  })
  expect((await sourceOf(dir, ['images/base', 'images/gpu', 'modules']))?.source.commit).toBe(gpu)
})

test('of a site in a folder of its repository', async () => {
  const { dir, first } = await history('sites/demo/')
  expect((await sourceOf(join(dir, 'sites/demo'), ['images/base']))?.source).toEqual({
    commit: first,
    branch: 'main',
    dirty: false,
  })
})

describe('changes that are not committed', () => {
  test.each<readonly [string, boolean, (dir: string) => Promise<unknown>]>([
    ['of an input', true, dir => writeFile(join(dir, 'images/base/image.yaml'), 'changed')],
    [
      'of an input, staged',
      true,
      async dir => {
        await writeFile(join(dir, 'images/base/image.yaml'), 'changed')
        await git(dir, 'add', '--all')
      },
    ],
    ['an input that is gone', true, dir => rm(join(dir, 'images/base/image.yaml'))],
    ['a new file among the inputs', true, dir => writeFiles(dir, { 'images/base/files/new': '' })],
    ['an input that was never committed', true, dir => writeFiles(dir, { 'images/none/a': '' })],
    ['of another image', false, dir => writeFile(join(dir, 'images/gpu/image.yaml'), 'changed')],
    ['a new file elsewhere', false, dir => writeFile(join(dir, 'new'), '')],
    ['only of the time', false, dir => writeFile(join(dir, 'images/base/image.yaml'), 'from: { tar: a }\n')],
  ])('%s: %s', async (_, dirty, change) => {
    const dir = await repositoryOf({ 'images/base/image.yaml': 'from: { tar: a }\n', 'images/gpu/image.yaml': '' })
    await change(dir)
    expect((await sourceOf(dir, ['images/base', 'images/none']))?.source.dirty).toBe(dirty)
  })
})

test('the branch is the one that is checked out, if any', async () => {
  const dir = await repositoryOf({ 'images/base/image.yaml': '' })
  const commit = await git(dir, 'rev-parse', 'HEAD')
  await git(dir, 'checkout', '--quiet', '-b', 'topic/new')
  expect((await sourceOf(dir, ['images/base']))?.source).toEqual({ commit, branch: 'topic/new', dirty: false })
  await git(dir, 'checkout', '--quiet', '--detach')
  expect((await sourceOf(dir, ['images/base']))?.source).toEqual({ commit, dirty: false })
})

describe('nothing is known', () => {
  test('without git', async () => {
    expect(await sourceOf(await directoryOf({ 'images/base/image.yaml': '' }), ['images/base'])).toBeUndefined()
  })

  test('before the first commit', async () => {
    const dir = await directoryOf({ 'images/base/image.yaml': '' })
    await git(dir, 'init', '--quiet')
    expect(await sourceOf(dir, ['images/base'])).toBeUndefined()
  })

  test('of what was never committed', async () => {
    const dir = await repositoryOf({ 'images/base/image.yaml': '' })
    await writeFiles(dir, { 'images/new/image.yaml': '' })
    expect(await sourceOf(dir, ['images/new'])).toBeUndefined()
  })
})
