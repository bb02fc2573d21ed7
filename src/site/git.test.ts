import { cp, mkdir, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from 'vitest'
import {
  checkoutTree,
  differingPaths,
  commitPaths,
  describeCommit,
  dirtyPaths,
  headCommit,
  initRepository,
  keep,
  openRepository,
  resolveCommit,
  snapshotTree,
  treeOf,
} from './git.ts'
import { gitSource } from './git-source.ts'
import { checkSite } from './check.ts'
import { openSite } from './site.ts'
import { type SiteSource, directorySource } from './source.ts'
import {
  type Files,
  SMALL,
  commitAll,
  directoryOf,
  failureOf,
  format,
  git,
  isolateGit,
  repositoryOf,
  temporaryDir,
  valueOf,
  writeFiles,
} from './testing.ts'

beforeAll(isolateGit)

/** The small site in the folder site/ of a larger repository. */
const LARGER: Files = {
  ...Object.fromEntries(Object.entries(SMALL).map(([path, text]) => [`site/${path}`, text])),
  'README.md': 'all we have\n',
  'other/nodes.yaml': 'not: ours\n',
}

describe('openRepository', () => {
  test('a site that is a repository', async () => {
    const dir = await repositoryOf(SMALL)
    expect(await openRepository(dir)).toEqual({ dir, prefix: '' })
  })

  test('a site that is a folder of one', async () => {
    const dir = await repositoryOf(LARGER)
    expect(await openRepository(join(dir, 'site'))).toEqual({ dir, prefix: 'site/' })
  })

  test('deeper, with a name that is not plain', async () => {
    const dir = await repositoryOf({ 'a b/zürich [1]/site.yaml': 'site: demo\n' })
    expect(await openRepository(join(dir, 'a b/zürich [1]'))).toEqual({ dir, prefix: 'a b/zürich [1]/' })
  })

  test('by a link to it', async () => {
    const dir = await repositoryOf(LARGER)
    const link = join(await temporaryDir(), 'link')
    await symlink(join(dir, 'site'), link)
    expect(await openRepository(link)).toEqual({ dir, prefix: 'site/' })
  })

  test('not a repository', async () => {
    const dir = await directoryOf(SMALL)
    expect(await failureOf(() => openRepository(dir))).toBe(`SITE_NOT_GIT: ${dir} is not in a git repository`)
    expect(await failureOf(() => openRepository(join(dir, 'none')))).toBe(
      `SITE_NOT_GIT: ${dir}/none is not in a git repository`,
    )
  })

  test('one that was just made', async () => {
    const dir = await directoryOf(SMALL)
    await initRepository(dir)
    expect(await openRepository(dir)).toEqual({ dir, prefix: '' })
    expect(await git(dir, 'symbolic-ref', '--short', 'HEAD')).toBe('main')
  })
})

describe('commits', () => {
  test('what names one', async () => {
    const dir = await repositoryOf(SMALL)
    const repo = await openRepository(dir)
    const head = await git(dir, 'rev-parse', 'HEAD')
    await git(dir, 'tag', 'v1')
    for (const name of ['HEAD', 'main', 'v1', head, head.slice(0, 8)])
      expect(await resolveCommit(repo, name)).toBe(head)
    const tree = await treeOf(repo, 'HEAD')
    for (const name of ['nothing', 'HEAD~1', '--all', '', tree]) expect(await resolveCommit(repo, name)).toBeUndefined()
    expect(await headCommit(repo)).toBe(head)
  })

  test('who and what', async () => {
    const dir = await repositoryOf(SMALL)
    const env = ['-c', 'user.name=Zoë Müller', '-c', 'user.email=zoe@example.org']
    await git(dir, ...env, 'commit', '--allow-empty', '-m', 'Grüße “all”\n\nmore')
    expect(await describeCommit(await openRepository(dir), 'HEAD')).toEqual({
      author: 'Zoë Müller',
      subject: 'Grüße “all”',
    })
  })
})

const empty = async () => {
  const dir = await directoryOf(SMALL)
  await initRepository(dir)
  return openRepository(dir)
}

describe('a repository without commits', () => {
  const NONE = 'SITE_NOT_GIT: the repository has no commit yet'

  test('has no head, and says so', async () => {
    const repo = await empty()
    expect(await resolveCommit(repo, 'HEAD')).toBeUndefined()
    expect(await failureOf(() => headCommit(repo))).toBe(NONE)
  })

  test('all of it differs from the last commit', async () => {
    expect(await dirtyPaths(await empty())).toEqual(['images/base/image.yaml', 'nodes.yaml', 'site.yaml'])
  })

  test('a snapshot fails with the same words, or works', async () => {
    const repo = await empty()
    expect(await failureOf(() => snapshotTree(repo))).toMatch(
      /^(SITE_NOT_GIT: the repository has no commit yet|no failure)$/,
    )
  })

  test('the first commit can be made', async () => {
    const repo = await empty()
    const commit = await commitPaths(repo, ['site.yaml'], 'first')
    expect(await git(repo.dir, 'ls-tree', '-r', '--name-only', commit)).toBe('site.yaml')
  })
})

describe('dirtyPaths', () => {
  const cases: [string, (dir: string) => Promise<unknown>, string[]][] = [
    ['nothing', () => Promise.resolve(), []],
    ['a change', dir => writeFiles(dir, { 'nodes.yaml': 'n4:\n' }), ['nodes.yaml']],
    ['a new file', dir => writeFiles(dir, { 'groups/g.yaml': '' }), ['groups/g.yaml']],
    ['new files in a new folder, each', dir => writeFiles(dir, { 'a/b': '', 'a/c': '' }), ['a/b', 'a/c']],
    ['a file less', dir => rm(join(dir, 'nodes.yaml')), ['nodes.yaml']],
    [
      'staged',
      async dir => {
        await writeFiles(dir, { 'nodes.yaml': 'n4:\n' })
        await git(dir, 'add', '.')
      },
      ['nodes.yaml'],
    ],
    [
      'staged, then changed back',
      async dir => {
        await writeFiles(dir, { 'nodes.yaml': 'n4:\n' })
        await git(dir, 'add', '.')
        await writeFiles(dir, { 'nodes.yaml': SMALL['nodes.yaml'] ?? '' })
      },
      ['nodes.yaml'],
    ],
    [
      'names with spaces, quotes, letters and arrows in them',
      dir => writeFiles(dir, { ' a b ': '', 'c"d': '', 'zürich.yaml': '', 'x -> y': '', 'new\nline': '' }),
      [' a b ', 'c"d', 'new\nline', 'x -> y', 'zürich.yaml'],
    ],
    [
      'moved, not staged',
      dir => rename(join(dir, 'nodes.yaml'), join(dir, 'hosts.yaml')),
      ['hosts.yaml', 'nodes.yaml'],
    ],
    ['moved and staged: both names', dir => git(dir, 'mv', 'nodes.yaml', 'hosts.yaml'), ['hosts.yaml', 'nodes.yaml']],
    [
      'what git is told to ignore is not new',
      async dir => {
        await writeFiles(dir, { '.gitignore': '*.swp\n', 'nodes.yaml.swp': '' })
        await git(dir, 'add', '.gitignore')
        await git(dir, 'commit', '--quiet', '-m', 'ignore')
      },
      [],
    ],
  ]
  test.each(cases)('%s', async (_, change, expected) => {
    const dir = await repositoryOf(SMALL)
    await change(dir)
    expect((await dirtyPaths(await openRepository(dir))).sort()).toEqual(expected)
  })

  test('of a folder: only its own, named from there', async () => {
    const dir = await repositoryOf(LARGER)
    await writeFiles(dir, { 'README.md': 'new', 'site/nodes.yaml': 'n5:\n', 'site/site/site.yaml': '', 'other/x': '' })
    expect(await dirtyPaths(await openRepository(join(dir, 'site')))).toEqual(['nodes.yaml', 'site/site.yaml'])
  })

  test('of a folder whose name has brackets in it', async () => {
    const dir = await repositoryOf({ 'site [1]/site.yaml': 'site: demo\n', 'site 1/site.yaml': '' })
    await writeFiles(dir, { 'site [1]/nodes.yaml': '', 'site 1/nodes.yaml': '' })
    expect(await dirtyPaths(await openRepository(join(dir, 'site [1]')))).toEqual(['nodes.yaml'])
  })

  test('moved out of the folder, moved into it', async () => {
    const dir = await repositoryOf({ ...LARGER, 'site/groups/a.yaml': 'domain: a\n', 'other/b.yaml': 'domain: bb\n' })
    await git(dir, 'mv', 'site/groups/a.yaml', 'other/a.yaml')
    await git(dir, 'mv', 'other/b.yaml', 'site/b.yaml')
    expect((await dirtyPaths(await openRepository(join(dir, 'site')))).sort()).toEqual(['b.yaml', 'groups/a.yaml'])
  })
})

const listed = (dir: string, tree: string): Promise<string> => git(dir, 'ls-tree', '-r', '--name-only', tree)

describe('snapshotTree', () => {
  test('of what is committed is the tree of the commit', async () => {
    const repo = await openRepository(await repositoryOf(SMALL))
    expect(await snapshotTree(repo)).toBe(await treeOf(repo, 'HEAD'))
  })

  test('holds changes, new files and not those that are gone; touches nobody’s index', async () => {
    const dir = await repositoryOf(SMALL)
    await writeFiles(dir, { 'groups/new.yaml': 'domain: x\n', 'staged.yaml': 'x', 'site.yaml': 'site: changed\n' })
    await git(dir, 'add', 'staged.yaml')
    await rm(join(dir, 'nodes.yaml'))
    const look = async (): Promise<string[]> => [
      await git(dir, 'status', '--porcelain'),
      await git(dir, 'ls-files', '--stage'),
      await git(dir, 'log', '--format=%H'),
    ]
    const before = await look()
    const tree = await snapshotTree(await openRepository(dir))
    expect(await look()).toEqual(before)
    expect(await listed(dir, tree)).toBe('groups/new.yaml\nimages/base/image.yaml\nsite.yaml\nstaged.yaml')
    expect(await git(dir, 'show', `${tree}:site.yaml`)).toBe('site: changed')
    expect((await readdir(join(dir, '.git'))).filter(name => name.includes('muster'))).toEqual([])
  })

  test('of a folder: the rest is as it was committed', async () => {
    const dir = await repositoryOf(LARGER)
    await writeFiles(dir, { 'README.md': 'changed', 'site/nodes.yaml': 'n9:\n', 'other/new': '' })
    const tree = await snapshotTree(await openRepository(join(dir, 'site')))
    expect(await git(dir, 'diff', '--name-only', 'HEAD', tree)).toBe('site/nodes.yaml')
  })

  test('what git ignores is not in it', async () => {
    const dir = await repositoryOf({ ...SMALL, '.gitignore': '*.swp\n' })
    await writeFiles(dir, { 'groups/a.yaml.swp': '' })
    const repo = await openRepository(dir)
    expect(await snapshotTree(repo)).toBe(await treeOf(repo, 'HEAD'))
  })

  test('two at once', async () => {
    const dir = await repositoryOf(SMALL)
    await writeFiles(dir, { 'nodes.yaml': 'n7:\n' })
    const repo = await openRepository(dir)
    const [one, ...others] = await Promise.all([snapshotTree(repo), snapshotTree(repo), snapshotTree(repo)])
    expect(others).toEqual([one, one])
  })

  test('while another git holds the index', async () => {
    const dir = await repositoryOf(SMALL)
    await writeFiles(dir, { '.git/index.lock': '' })
    const repo = await openRepository(dir)
    expect(await snapshotTree(repo)).toBe(await treeOf(repo, 'HEAD'))
  })

  test('kept, it survives the garbage collector', async () => {
    const dir = await repositoryOf(SMALL)
    const repo = await openRepository(dir)
    const snapshot = async (text: string): Promise<string> => {
      await writeFiles(dir, { 'nodes.yaml': text })
      return snapshotTree(repo)
    }
    const [kept, lost] = [await snapshot('n5:\n'), await snapshot('n6:\n')]
    await keep(repo, 'generation/1', kept)
    await git(dir, 'gc', '--quiet', '--prune=now')
    expect(await git(dir, 'show', `${kept}:nodes.yaml`)).toBe('n5:')
    expect(await git(dir, 'for-each-ref', '--format=%(refname)')).toBe('refs/heads/main\nrefs/muster/generation/1')
    expect(await failureOf(() => git(dir, 'cat-file', '-e', lost))).toMatch(/^EXEC_FAILED/)
  })
})

describe('checkoutTree', () => {
  test('makes the files what they were, and removes those that did not exist', async () => {
    const dir = await repositoryOf({ ...SMALL, 'groups/old.yaml': 'domain: old\n' })
    const repo = await openRepository(dir)
    const first = await treeOf(repo, 'HEAD')
    await writeFiles(dir, { 'nodes.yaml': 'n9:\n', 'groups/new.yaml': '{}\n', 'groups/old.yaml': null })
    await commitAll(dir, 'second')
    expect(await differingPaths(repo, 'HEAD', first)).toEqual(['groups/new.yaml', 'groups/old.yaml', 'nodes.yaml'])
    await checkoutTree(repo, first)
    expect(await snapshotTree(repo)).toBe(first)
    expect(await readdir(join(dir, 'groups'))).toEqual(['old.yaml'])
    expect((await dirtyPaths(repo)).sort()).toEqual(['groups/new.yaml', 'groups/old.yaml', 'nodes.yaml'])
    await commitPaths(repo, ['groups/new.yaml', 'groups/old.yaml', 'nodes.yaml'], 'back')
    expect(await treeOf(repo, 'HEAD')).toBe(first)
  })

  test('what is that already stays', async () => {
    const repo = await openRepository(await repositoryOf(SMALL))
    expect(await differingPaths(repo, 'HEAD', await treeOf(repo, 'HEAD'))).toEqual([])
    await checkoutTree(repo, await treeOf(repo, 'HEAD'))
    expect(await dirtyPaths(repo)).toEqual([])
  })

  test('of a folder: leaves the rest of the repository alone', async () => {
    const dir = await repositoryOf(LARGER)
    const repo = await openRepository(join(dir, 'site'))
    const first = await treeOf(repo, 'HEAD')
    await writeFiles(dir, { 'README.md': 'second\n', 'site/nodes.yaml': 'n9:\n', 'other/new': 'x' })
    await commitAll(dir, 'second')
    expect(await differingPaths(repo, 'HEAD', first)).toEqual(['nodes.yaml'])
    await checkoutTree(repo, first)
    expect(await git(dir, 'status', '--porcelain')).toBe('M  site/nodes.yaml')
    expect(await git(dir, 'diff', '--name-only', first)).toBe('README.md\nother/new')
  })

  test('names that are not plain', async () => {
    const dir = await repositoryOf(SMALL)
    const repo = await openRepository(dir)
    const first = await treeOf(repo, 'HEAD')
    await writeFiles(dir, { 'files/a b [1]*.txt': '', 'files/zürich': '' })
    await commitAll(dir)
    expect(await differingPaths(repo, 'HEAD', first)).toEqual(['files/a b [1]*.txt', 'files/zürich'])
    await checkoutTree(repo, first)
  })
})

const show = (dir: string): Promise<string> =>
  git(dir, 'show', '--format=%an <%ae> %cn <%ce> %s', '--name-status', 'HEAD')

describe('commitPaths', () => {
  test('the named files and nothing else, staged or not', async () => {
    const dir = await repositoryOf(SMALL)
    await writeFiles(dir, { 'nodes.yaml': 'n4:\n', 'site.yaml': 'site: other\n', 'groups/new.yaml': '', staged: '' })
    await git(dir, 'add', 'staged', 'site.yaml')
    const commit = await commitPaths(await openRepository(dir), ['nodes.yaml', 'groups/new.yaml'], 'Set it')
    expect(commit).toBe(await git(dir, 'rev-parse', 'HEAD'))
    expect(await git(dir, 'show', '--format=%s', '--name-status', commit)).toBe(
      'Set it\n\nA\tgroups/new.yaml\nM\tnodes.yaml',
    )
    expect(await git(dir, 'status', '--porcelain')).toBe('M  site.yaml\nA  staged')
  })

  test('a file that is gone', async () => {
    const dir = await repositoryOf({ ...SMALL, 'groups/g.yaml': '{}' })
    await rm(join(dir, 'groups/g.yaml'))
    await commitPaths(await openRepository(dir), ['groups/g.yaml'], 'Remove g')
    expect(await show(dir)).toBe('muster <muster@localhost> muster <muster@localhost> Remove g\n\nD\tgroups/g.yaml')
  })

  test('in a folder, also with names that look like patterns', async () => {
    const dir = await repositoryOf(LARGER)
    await writeFiles(dir, { 'site/files/a[1]*.txt': '', 'site/files/a1b.txt': '', 'site/:(top)x': '' })
    await commitPaths(await openRepository(join(dir, 'site')), ['files/a[1]*.txt', ':(top)x'], 'Add')
    expect(await git(dir, 'show', '--format=', '--name-only', '-z', 'HEAD')).toBe(
      'site/:(top)x\0site/files/a[1]*.txt\0',
    )
  })

  test.each<[string, [string, string] | undefined, { name: string; email: string } | undefined, string]>([
    ['nobody is known: muster', undefined, undefined, 'muster <muster@localhost> muster <muster@localhost>'],
    ['git knows', ['Site', 'site@x.org'], undefined, 'Site <site@x.org> Site <site@x.org>'],
    [
      'somebody is named',
      ['Site', 'site@x.org'],
      { name: 'Ann', email: 'ann@x.org' },
      'Ann <ann@x.org> Site <site@x.org>',
    ],
    [
      'somebody is named, git knows nobody',
      undefined,
      { name: 'Ann', email: 'ann@x.org' },
      'Ann <ann@x.org> muster <muster@localhost>',
    ],
  ])('author and committer: %s', async (_, configured, author, expected) => {
    const dir = await repositoryOf(SMALL)
    for (const [i, key] of ['user.name', 'user.email'].entries())
      if (configured) await git(dir, 'config', key, configured[i] ?? '')
    await writeFiles(dir, { 'nodes.yaml': 'n4:\n' })
    await commitPaths(await openRepository(dir), ['nodes.yaml'], 'Set', author)
    expect(await git(dir, 'log', '-1', '--format=%an <%ae> %cn <%ce>')).toBe(expected)
  })

  test('hooks of the repository do not get in the way', async () => {
    const dir = await repositoryOf(SMALL)
    await mkdir(join(dir, '.git/hooks'), { recursive: true })
    await writeFile(join(dir, '.git/hooks/pre-commit'), '#!/bin/sh\nexit 1\n', { mode: 0o755 })
    await writeFiles(dir, { 'nodes.yaml': 'n4:\n' })
    await commitPaths(await openRepository(dir), ['nodes.yaml'], 'Set')
    expect(await git(dir, 'log', '-1', '--format=%s')).toBe('Set')
  })

  test('a message of several lines, one that begins with a dash, one with a comment in it', async () => {
    const dir = await repositoryOf(SMALL)
    await writeFiles(dir, { 'nodes.yaml': 'n4:\n' })
    await commitPaths(await openRepository(dir), ['nodes.yaml'], '--amend\n\n#1 is not a comment')
    expect(await git(dir, 'log', '-1', '--format=%B')).toBe('--amend\n\n#1 is not a comment')
  })
})

const contentOf = async (source: SiteSource): Promise<unknown> => {
  const listed = await source.files()
  const files = await Promise.all(
    listed.map(async file =>
      file.refused === undefined
        ? {
            path: file.path,
            size: file.size,
            blob: await source.blob(file),
            text: (await source.read(file)).toString('hex'),
          }
        : { path: file.path, size: file.size, refused: file.refused },
    ),
  )
  const site = await openSite(source)
  return { files, nodes: [...site.nodes.keys()].map(name => valueOf(site, name)), problems: format(checkSite(site)) }
}

/** The site as it is in the directory, in a commit of it, and in a snapshot. */
async function threeWays(dir: string): Promise<{ directory: unknown; commit: unknown; snapshot: unknown }> {
  await git(dir, 'init', '--quiet')
  await commitAll(dir)
  const repo = await openRepository(dir)
  return {
    directory: await contentOf(await directorySource(dir)),
    commit: await contentOf(gitSource(repo, 'HEAD')),
    snapshot: await contentOf(gitSource(repo, await snapshotTree(repo))),
  }
}

describe('gitSource and directorySource answer alike for the same content', () => {
  test.each<[string, Files]>([
    ['the smallest', { 'site.yaml': 'site: x\n' }],
    ['the small one', SMALL],
    ['an empty file', { ...SMALL, 'nodes.yaml': '', 'files/empty': '' }],
    [
      'names in an order that is easily got wrong',
      {
        ...SMALL,
        'nodes/a.yaml': '',
        'nodes/a/b.yaml': '',
        'nodes/a-b.yaml': '',
        'nodes/B.yaml': '',
        'files/é': '',
        'files/z': '',
      },
    ],
    [
      'names with spaces, quotes and letters',
      { ...SMALL, 'files/a b': '1', 'files/c"d\'': '2', 'files/zürich\n': '3' },
    ],
    [
      'bytes that are no text',
      { ...SMALL, 'files/bin': Buffer.from([0, 255, 10, 13]), 'groups/g.yaml': Buffer.from([0xff]) },
    ],
    ['ends of lines as on Windows', { ...SMALL, 'nodes.yaml': 'n1: {}\r\nn2: {}\r\n' }],
    ['what is none of our business', { ...SMALL, 'README.md': '', 'x/site.yaml': '', 'nodes.yml': '' }],
    ['files that are named like folders', { ...SMALL, groups: 'x', clusters: 'y' }],
    ['the same content twice', { ...SMALL, 'groups/a.yaml': 'domain: x\n', 'groups/b.yaml': 'domain: x\n' }],
    ['many files', { ...SMALL, ...Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`files/f${i}`, `${i}`])) }],
  ])('%s', async (_, files) => {
    const dir = await directoryOf(files)
    const { directory, commit, snapshot } = await threeWays(dir)
    expect(commit).toEqual(directory)
    expect(snapshot).toEqual(directory)
  })

  test('examples/site', async () => {
    const dir = await temporaryDir()
    await cp(fileURLToPath(new URL('../../examples/site', import.meta.url)), dir, { recursive: true })
    const { directory, commit, snapshot } = await threeWays(dir)
    expect(commit).toEqual(directory)
    expect(snapshot).toEqual(directory)
  })

  test.each<[string, string, string]>([
    ['a link to a file', 'groups/l.yaml', 'g.yaml'],
    ['a link in another folder', 'files/l', '../groups/g.yaml'],
    ['a link to a file the site does not read itself', 'groups/l.yaml', '../templates/x.yaml'],
    ['a link through its own folder', 'groups/l.yaml', '../groups/../groups/g.yaml'],
    ['a link to nothing', 'groups/l.yaml', 'nothing.yaml'],
    ['a link to itself', 'groups/l.yaml', 'l.yaml'],
    ['a link out', 'groups/l.yaml', '../../x'],
    ['a link out by its whole path', 'groups/l.yaml', '/etc/hostname'],
    ['a link to a folder', 'groups/l.yaml', '../files'],
    ['a folder that is a link', 'clusters', 'groups'],
  ])('%s', async (_, path, target) => {
    const dir = await directoryOf({
      ...SMALL,
      'groups/g.yaml': 'domain: x\n',
      'files/a': 'a',
      'templates/x.yaml': 'domain: y\n',
    })
    await symlink(target, join(dir, path))
    const { directory, commit, snapshot } = await threeWays(dir)
    expect(commit).toEqual(directory)
    expect(snapshot).toEqual(directory)
  })

  test('in a folder of a larger repository', async () => {
    const dir = await repositoryOf({ ...LARGER, 'site/files/a': 'a' })
    const source = gitSource(await openRepository(join(dir, 'site')), 'HEAD')
    expect((await source.files()).map(({ path }) => path)).toEqual([
      'files/a',
      'images/base/image.yaml',
      'nodes.yaml',
      'site.yaml',
    ])
    expect(await contentOf(source)).toEqual(await contentOf(await directorySource(join(dir, 'site'))))
  })

  test('an old commit stays what it was', async () => {
    const dir = await repositoryOf(SMALL)
    const repo = await openRepository(dir)
    const source = gitSource(repo, await headCommit(repo))
    const before = await contentOf(source)
    await writeFiles(dir, { 'nodes.yaml': 'x1:\n', 'groups/g.yaml': '{}' })
    await commitAll(dir)
    expect(await contentOf(source)).toEqual(before)
  })
})
