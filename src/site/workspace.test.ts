import { chmod, readFile, readdir, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { MusterError } from '../lib/errors.ts'
import { type FileEdits, addGroup, addNodes, removeGroup, removeNodes, setGroup, setNodes } from './edit.ts'
import { dirtyPaths } from './git.ts'
import type { Site } from './site.ts'
import { blobId } from './source.ts'
import {
  type Files,
  SMALL,
  commitAll,
  directoryOf,
  failureOf,
  format,
  git,
  isolateGit,
  memorySource,
  repositoryOf,
  valueOf,
  writeFiles,
} from './testing.ts'
import { checkSite } from './check.ts'
import { openWorkspace, overlaySource } from './workspace.ts'

beforeAll(isolateGit)

const SITE: Files = {
  ...SMALL,
  'groups/g.yaml': '# a group\nvars: { x: 1 }\n',
  'clusters/prod.yaml': 'nodes: n[1-3]\n',
  'nodes.yaml': '# the nodes\nn[1-3]: { groups: [g] }   # all\n',
}

const change = async (
  dir: string,
  plan: (site: Site) => FileEdits,
  author?: { name: string; email: string },
): Promise<{ commit: string; files: string[] }> => (await openWorkspace(dir)).change(plan, 'Change it', author)

/** All that a change could have touched: files, index, commits. */
async function everything(dir: string): Promise<unknown> {
  const paths = (await readdir(dir, { recursive: true, withFileTypes: true }))
    .filter(entry => entry.isFile() && !entry.parentPath.includes('.git'))
    .map(entry => join(entry.parentPath, entry.name))
    .sort()
  return [
    await Promise.all(paths.map(async path => [path.slice(dir.length), await readFile(path, 'utf8')])),
    await git(dir, 'status', '--porcelain'),
    await git(dir, 'rev-parse', '--verify', 'HEAD'),
  ]
}

/** The work fails so, and nothing is any different afterwards. */
async function failsAndChangesNothing(dir: string, plan: (site: Site) => FileEdits): Promise<string> {
  const before = await everything(dir)
  const failure = await failureOf(() => change(dir, plan))
  expect(await everything(dir)).toEqual(before)
  return failure
}

describe('a change', () => {
  const cases: [string, (site: Site) => FileEdits, string][] = [
    [
      'addNodes',
      site => addNodes(site, 'n4', { groups: ['g'] }, { cluster: 'prod' }),
      'M\tclusters/prod.yaml\nM\tnodes.yaml',
    ],
    ['setNodes', site => setNodes(site, 'n2', { domain: 'x' }), 'M\tnodes.yaml'],
    ['removeNodes', site => removeNodes(site, 'n2'), 'M\tclusters/prod.yaml\nM\tnodes.yaml'],
    ['addGroup', site => addGroup(site, 'new', { domain: 'x' }), 'A\tgroups/new.yaml'],
    ['addGroup, of nothing', site => addGroup(site, 'new', {}), 'A\tgroups/new.yaml'],
    ['setGroup', site => setGroup(site, 'g', { domain: 'x' }), 'M\tgroups/g.yaml'],
    ['setGroup, of its only key', site => setGroup(site, 'g', { vars: null }), 'M\tgroups/g.yaml'],
    ['removeGroup', site => removeGroup(site, 'free'), 'D\tgroups/free.yaml'],
  ]
  test.each(cases)('%s is one commit of the files it touched, and leaves a valid site', async (_, plan, expected) => {
    const dir = await repositoryOf({ ...SITE, 'groups/free.yaml': '{}\n' })
    const before = await git(dir, 'rev-parse', 'HEAD')
    const { commit, files } = await change(dir, plan)
    expect(await git(dir, 'rev-parse', 'HEAD~1')).toBe(before)
    expect(await git(dir, 'show', '--format=%H %s', '--name-status', 'HEAD')).toBe(`${commit} Change it\n\n${expected}`)
    expect(files.sort()).toEqual(expected.split('\n').map(line => line.slice(2)))
    expect(await git(dir, 'status', '--porcelain')).toBe('')
    expect(format(checkSite(await (await openWorkspace(dir)).open()))).toEqual([])
  })

  test('only the lines in question, byte for byte', async () => {
    const dir = await repositoryOf(SITE)
    await change(dir, site => addNodes(site, 'n4', {}, { cluster: 'prod' }))
    expect(await readFile(join(dir, 'nodes.yaml'), 'utf8')).toBe(
      '# the nodes\nn[1-3]: { groups: [g] }   # all\nn4: {}\n',
    )
    expect(await readFile(join(dir, 'clusters/prod.yaml'), 'utf8')).toBe('nodes: n[1-4]\n')
  })

  test('in a folder of a larger repository', async () => {
    const dir = await repositoryOf({
      'README.md': '',
      ...Object.fromEntries(Object.entries(SITE).map(([path, text]) => [`my site/${path}`, text])),
    })
    await writeFiles(dir, { 'README.md': 'changed' })
    const { files } = await change(join(dir, 'my site'), site => setNodes(site, 'n1', { domain: 'x' }))
    expect(files).toEqual(['nodes.yaml'])
    expect(await git(dir, 'show', '--format=', '--name-only', 'HEAD')).toBe('my site/nodes.yaml')
    expect(await git(dir, 'status', '--porcelain')).toBe(' M README.md')
  })

  test('by somebody: the author of the commit', async () => {
    const dir = await repositoryOf(SITE)
    await change(dir, site => setNodes(site, 'n1', { domain: 'x' }), { name: 'Ann Ops', email: 'ann@example.org' })
    expect(await git(dir, 'log', '-1', '--format=%an <%ae>')).toBe('Ann Ops <ann@example.org>')
  })

  test('by nobody in particular', async () => {
    const dir = await repositoryOf(SITE)
    await change(dir, site => setNodes(site, 'n1', { domain: 'x' }))
    expect(await git(dir, 'log', '-1', '--format=%an <%ae>')).toBe('muster <muster@localhost>')
  })

  test('one after the other: each sees the one before', async () => {
    const dir = await repositoryOf(SITE)
    const workspace = await openWorkspace(dir)
    for (const index of [4, 5, 6])
      await workspace.change(site => addNodes(site, `n${index}`, {}, { cluster: 'prod' }), `Add n${index}`)
    expect(await git(dir, 'log', '--format=%s')).toBe('Add n6\nAdd n5\nAdd n4\nfirst')
    expect([...(await workspace.open()).nodes.keys()]).toEqual(['n1', 'n2', 'n3', 'n4', 'n5', 'n6'])
  })

  test('of what is so already makes no commit, and is no failure', async () => {
    const dir = await repositoryOf({ ...SITE, 'nodes.yaml': 'n[1-3]: { domain: x }\n' })
    const before = await everything(dir)
    expect(await failureOf(() => change(dir, site => setNodes(site, 'n[1-3]', { domain: 'x' })))).toBe('no failure')
    expect(await everything(dir)).toEqual(before)
  })

  test('keeps the mode of a file', async () => {
    const dir = await repositoryOf(SITE)
    await chmod(join(dir, 'nodes.yaml'), 0o640)
    await change(dir, site => setNodes(site, 'n1', { domain: 'x' }))
    expect(((await stat(join(dir, 'nodes.yaml'))).mode & 0o777).toString(8)).toBe('640')
  })

  test('of a file that is a link changes the file, not the link', async () => {
    const dir = await directoryOf({ ...SITE, 'nodes.yaml': null, 'nodes/all.yaml': 'n[1-3]: { groups: [g] }\n' })
    await symlink('all.yaml', join(dir, 'nodes/zz.yaml'))
    await git(dir, 'init', '--quiet')
    await commitAll(dir)
    await change(dir, site => setNodes(site, 'n[1-3]', { domain: 'x' }))
    expect(await git(dir, 'ls-files', '--stage', 'nodes/zz.yaml')).toMatch(/^120000 /)
    expect(valueOf(await (await openWorkspace(dir)).open())['domain']).toBe('x')
  })

  test('finished work of others stays staged, unfinished stays unfinished', async () => {
    const dir = await repositoryOf(SITE)
    await writeFiles(dir, { 'groups/g.yaml': 'domain: y\n', 'groups/staged.yaml': '{}\n' })
    await git(dir, 'add', 'groups/staged.yaml')
    await change(dir, site => setNodes(site, 'n1', { domain: 'x' }))
    expect(await git(dir, 'status', '--porcelain')).toBe(' M groups/g.yaml\nA  groups/staged.yaml')
  })
})

const escape =
  (path: string): (() => FileEdits) =>
  () =>
    new Map([[path, [{ op: 'set', path: ['x'], value: 2 }]]])

describe('all or nothing', () => {
  test.each<[string, (site: Site) => FileEdits, string]>([
    ['what the plan refuses', site => setNodes(site, 'n9', { domain: 'x' }), 'NODE_UNKNOWN: no such node: n9'],
    [
      'what cannot be written',
      site => setNodes(site, 'n[1-3]', { 'groups.x': 1 }),
      'EDIT_INVALID: n[1-3].groups is a list, not a map',
    ],
    ['an unknown key', site => setNodes(site, 'n1', { 'boot.imgae': 'x' }), 'SITE_INVALID: the site has 1 error'],
    [
      'an image that does not exist',
      site => setNodes(site, 'n1', { 'boot.image': 'gpu' }),
      'SITE_INVALID: the site has 1 error',
    ],
    ['a node in no cluster', site => addNodes(site, 'n4', {}), 'EDIT_INVALID: say which cluster they are in'],
    ['a group that another builds on', site => removeGroup(site, 'base'), 'SITE_INVALID: the site has 1 error'],
    [
      'a new file that is wrong',
      site => addGroup(site, 'new', { groups: ['none'] }),
      'SITE_INVALID: the site has 1 error',
    ],
  ])('%s', async (_, plan, expected) => {
    const dir = await repositoryOf({ ...SITE, 'groups/base.yaml': '{}\n', 'groups/top.yaml': 'groups: [base]\n' })
    expect(await failsAndChangesNothing(dir, plan)).toBe(expected)
  })

  test('the problems it would make are told', async () => {
    const dir = await repositoryOf(SITE)
    const error: unknown = await change(dir, site => setNodes(site, 'n1', { 'boot.imgae': 'x' })).catch(
      (e: unknown) => e,
    )
    expect(error).toBeInstanceOf(MusterError)
    expect((error as MusterError).details).toEqual(['nodes.yaml:5:5: n1.boot.imgae: unknown key — did you mean image?'])
  })

  test.each<[string, Files, string]>([
    ['one', { 'nodes.yaml': '# the nodes\nn[1-3]: {}\n' }, 'SITE_DIRTY: nodes.yaml has changes that are not committed'],
    [
      'two',
      { 'nodes.yaml': 'n[1-3]: {}\n', 'clusters/prod.yaml': 'nodes: n[1-3] # x\n' },
      'SITE_DIRTY: clusters/prod.yaml, nodes.yaml have changes that are not committed',
    ],
  ])('a file with changes that are not committed is left alone: %s', async (_, files, expected) => {
    const dir = await repositoryOf(SITE)
    await writeFiles(dir, files)
    expect(await failsAndChangesNothing(dir, site => addNodes(site, 'n4', {}, { cluster: 'prod' }))).toBe(expected)
  })

  test('a new file that is there already, but not committed', async () => {
    const dir = await repositoryOf(SITE)
    await writeFiles(dir, { 'nodes/rack2.yaml': 'r1: {}\n' })
    await writeFiles(dir, { 'clusters/prod.yaml': 'nodes: n[1-3],r1\n' })
    await git(dir, 'commit', '--quiet', '-m', 'r1', 'clusters/prod.yaml')
    expect(await failsAndChangesNothing(dir, site => setNodes(site, 'r1', { domain: 'x' }))).toBe(
      'SITE_DIRTY: nodes/rack2.yaml has changes that are not committed',
    )
  })

  test('git is busy', async () => {
    const dir = await repositoryOf(SITE)
    await writeFile(join(dir, '.git/index.lock'), '')
    expect(await failsAndChangesNothing(dir, site => addNodes(site, 'n4', {}, { cluster: 'prod' }))).toMatch(
      /^EXEC_FAILED: git .* update-index /,
    )
  })

  test.each<[string, (site: Site) => FileEdits]>([
    ['a change', site => addNodes(site, 'n4', {}, { cluster: 'prod' })],
    ['a new file', site => addGroup(site, 'new', {})],
    ['a file less', site => removeGroup(site, 'free')],
  ])('git adds but cannot commit: %s', async (_, plan) => {
    const dir = await repositoryOf({ ...SITE, 'groups/free.yaml': '{}\n' })
    await git(dir, 'config', 'commit.gpgSign', 'true')
    await git(dir, 'config', 'gpg.program', '/bin/false')
    expect(await failsAndChangesNothing(dir, plan)).toMatch(/^EXEC_FAILED: git .* commit-tree /)
    expect(await dirtyPaths((await openWorkspace(dir)).repo)).toEqual([])
  })

  test('after a failure the next change works', async () => {
    const dir = await repositoryOf(SITE)
    await git(dir, 'config', 'commit.gpgSign', 'true')
    await git(dir, 'config', 'gpg.program', '/bin/false')
    await failureOf(() => change(dir, site => addGroup(site, 'new', {})))
    await git(dir, 'config', 'commit.gpgSign', 'false')
    await change(dir, site => addGroup(site, 'new', {}))
    expect(await git(dir, 'log', '--format=%s')).toBe('Change it\nfirst')
  })

  test('a file outside the site is never written', async () => {
    const dir = await repositoryOf({
      'README.md': 'x: 1\n',
      ...Object.fromEntries(Object.entries(SITE).map(([path, text]) => [`site/${path}`, text])),
    })
    const before = await everything(dir)
    for (const path of ['../README.md', '../new.yaml', '../.git/config', 'nodes/../../new.yaml'])
      expect(await failureOf(() => change(join(dir, 'site'), escape(path)))).toMatch(/^EDIT_INVALID: /)
    expect(await everything(dir)).toEqual(before)
  })
})

describe('openWorkspace', () => {
  test('not a site', async () => {
    const dir = await directoryOf({})
    expect(await failureOf(() => openWorkspace(dir))).toBe(
      `SITE_NOT_FOUND: ${dir} holds no site (there is no site.yaml in it)`,
    )
  })

  test('not a repository', async () => {
    const dir = await directoryOf(SMALL)
    expect(await failureOf(() => openWorkspace(dir))).toBe(`SITE_NOT_GIT: ${dir} is not in a git repository`)
  })

  test('a repository without commits takes a change as its first', async () => {
    const dir = await directoryOf(SITE)
    await git(dir, 'init', '--quiet')
    expect(await failureOf(() => change(dir, site => setNodes(site, 'n1', { domain: 'x' })))).toBe(
      'SITE_DIRTY: nodes.yaml has changes that are not committed',
    )
    await change(dir, site => addGroup(site, 'new', {}))
    expect(await git(dir, 'show', '--format=%s', '--name-only', 'HEAD')).toBe('Change it\n\ngroups/new.yaml')
  })

  test('open builds on a site that was open before', async () => {
    const workspace = await openWorkspace(await repositoryOf(SITE))
    const first = await workspace.open()
    const value = valueOf(first)
    expect(valueOf(await workspace.open(first))).toBe(value)
  })
})

test('overlaySource: some files changed, some new, some gone', async () => {
  const base = memorySource({ 'a.yaml': 'a', 'b.yaml': 'b', 'c.yaml': 'c' })
  const overlay = overlaySource(
    base,
    new Map([
      ['b.yaml', Buffer.from('new')],
      ['c.yaml', null],
      ['aa.yaml', Buffer.from('')],
    ]),
  )
  const files = await overlay.files()
  const seen = await Promise.all(
    files.map(async file => [file.path, file.size, String(await overlay.read(file)), await overlay.blob(file)]),
  )
  expect(seen).toEqual([
    ['a.yaml', 1, 'a', blobId(Buffer.from('a'))],
    ['aa.yaml', 0, '', blobId(Buffer.from(''))],
    ['b.yaml', 3, 'new', blobId(Buffer.from('new'))],
  ])
})
