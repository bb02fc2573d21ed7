import { chmod, mkdir, readFile, readdir, rename, rm, stat, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { MusterError } from '../../lib/errors.ts'
import { type Files, commitAll, directoryOf, git, isolateGit, temporaryDir, writeFiles } from '../../site/testing.ts'
import { readModules } from './read.ts'
import { resolveModules } from './resolve.ts'
import { type ModuleSource, fetchModuleSource, withoutCredentials } from './source.ts'

beforeAll(isolateGit)

const MODULES: Files = {
  'README.md': 'modules for all of us\n',
  'modules/munge/module.yaml': '',
  'modules/munge/install.sh': '#!/bin/sh\n',
  'modules/slurm/module.yaml': 'requires: [munge]\n',
  'modules/slurm/install.sh': '#!/bin/sh\n',
}

interface Upstream {
  readonly dir: string
  readonly commit: string
  readonly url: string
}

async function upstream(files: Files = MODULES): Promise<Upstream> {
  const dir = await directoryOf(files)
  await git(dir, 'init', '--quiet')
  await chmod(join(dir, 'modules/slurm/install.sh'), 0o755)
  return { dir, commit: await commitAll(dir), url: `file://${dir}` }
}

const sourceOf = ({ url, commit }: Upstream, more: Partial<ModuleSource> = {}): ModuleSource => ({
  name: 'common',
  git: url,
  commit,
  path: 'modules',
  ...more,
})

async function failureOf(work: () => Promise<unknown>): Promise<MusterError> {
  const error: unknown = await work().then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (error instanceof MusterError) return error
  throw new Error(`no failure of ours: ${String(error)}`)
}

test('the modules of a commit', async () => {
  const repository = await upstream()
  const cache = await temporaryDir()
  const dir = await fetchModuleSource(sourceOf(repository), cache)
  expect(dir).toBe(join(cache, 'trees', repository.commit, 'modules'))
  const modules = await readModules(dir, 'common')
  expect(resolveModules(['slurm'], modules).map(({ name, file }) => [name, file])).toEqual([
    ['munge', 'common:munge/module.yaml'],
    ['slurm', 'common:slurm/module.yaml'],
  ])
  // The same as in the directory it was committed from, executable bits and all.
  const original = await readModules(join(repository.dir, 'modules'))
  expect([...modules.values()].map(({ digest }) => digest)).toEqual([...original.values()].map(({ digest }) => digest))
})

test('without a path the whole repository', async () => {
  const repository = await upstream()
  const { path: _, ...whole } = sourceOf(repository)
  const dir = await fetchModuleSource(whole, await temporaryDir())
  expect((await readdir(dir)).sort()).toEqual(['README.md', 'modules'])
})

test('the commit that is named, whatever branches say now', async () => {
  const repository = await upstream()
  await writeFiles(repository.dir, { 'modules/munge/install.sh': 'exit 1\n' })
  const later = await commitAll(repository.dir, 'second')
  const cache = await temporaryDir()
  const read = async (commit: string): Promise<string> =>
    readFile(join(await fetchModuleSource(sourceOf(repository, { commit }), cache), 'munge/install.sh'), 'utf8')
  expect(await read(repository.commit)).toBe('#!/bin/sh\n')
  expect(await read(later)).toBe('exit 1\n')
  expect(await read(repository.commit)).toBe('#!/bin/sh\n')
})

test('a commit that no branch has any more', async () => {
  const repository = await upstream()
  await writeFiles(repository.dir, { 'README.md': 'other\n' })
  await git(repository.dir, 'add', '--all')
  await git(repository.dir, 'commit', '--quiet', '--amend', '--message', 'changed')
  const dir = await fetchModuleSource(sourceOf(repository), await temporaryDir())
  expect(await readdir(dir)).toEqual(['munge', 'slurm'])
})

test('a server that gives nothing but branches', async () => {
  const repository = await upstream()
  await writeFiles(repository.dir, { 'README.md': 'other\n' })
  await commitAll(repository.dir, 'second')
  // Of the old protocols, in which what is not advertised is refused.
  vi.stubEnv('GIT_CONFIG_COUNT', '1')
  vi.stubEnv('GIT_CONFIG_KEY_0', 'protocol.version')
  vi.stubEnv('GIT_CONFIG_VALUE_0', '0')
  try {
    const dir = await fetchModuleSource(sourceOf(repository), await temporaryDir())
    expect(await readdir(dir)).toEqual(['munge', 'slurm'])
  } finally {
    for (const name of ['COUNT', 'KEY_0', 'VALUE_0']) vi.stubEnv(`GIT_CONFIG_${name}`, undefined)
  }
})

describe('once it is there', () => {
  test('no repository is needed any more', async () => {
    const repository = await upstream()
    const cache = await temporaryDir()
    const dir = await fetchModuleSource(sourceOf(repository), cache)
    await rename(repository.dir, `${repository.dir}.gone`)
    await mkdir(repository.dir)
    expect(await fetchModuleSource(sourceOf(repository), cache)).toBe(dir)
    // Not even when the exported files are lost.
    await rm(join(cache, 'trees'), { recursive: true })
    expect(await fetchModuleSource(sourceOf(repository), cache)).toBe(dir)
    expect(await readdir(dir)).toEqual(['munge', 'slurm'])
    await rm(`${repository.dir}.gone`, { recursive: true })
  })

  test('another commit is fetched into the same cache', async () => {
    const repository = await upstream()
    const cache = await temporaryDir()
    await fetchModuleSource(sourceOf(repository), cache)
    await writeFiles(repository.dir, { 'README.md': 'new\n' })
    const commit = await commitAll(repository.dir, 'second')
    await fetchModuleSource(sourceOf(repository, { commit }), cache)
    expect(await readdir(join(cache, 'git'))).toHaveLength(1)
    expect((await readdir(join(cache, 'trees'))).sort()).toEqual([repository.commit, commit].sort())
  })
})

test('many at once', async () => {
  const repository = await upstream()
  await writeFiles(repository.dir, { 'README.md': 'new\n' })
  const commit = await commitAll(repository.dir, 'second')
  const cache = await temporaryDir()
  const wanted = Array.from({ length: 8 }, (_, index) => (index % 2 === 0 ? commit : repository.commit))
  const dirs = await Promise.all(wanted.map(each => fetchModuleSource(sourceOf(repository, { commit: each }), cache)))
  expect(dirs).toEqual(wanted.map(each => join(cache, 'trees', each, 'modules')))
  // Nothing half made is left behind.
  expect((await readdir(join(cache, 'trees'))).sort()).toEqual([repository.commit, commit].sort())
  expect(await readdir(join(cache, 'git'))).toHaveLength(1)
})

test('the files are what was committed, whatever attributes say', async () => {
  const files: Files = {
    ...MODULES,
    '.gitattributes':
      '* text eol=crlf ident\nhidden export-ignore\nsubst export-subst\nlatin working-tree-encoding=UTF-16\n',
    hidden: 'there\n',
    subst: '$Format:%H$ $Id$\n',
    latin: 'plain\n',
    'modules/slurm/unix': 'a\nb\n',
  }
  const dir = await directoryOf(files)
  await git(dir, 'init', '--quiet')
  // As plain bytes: git would turn them when it adds them.
  for (const path of Object.keys(files)) {
    const blob = await git(dir, 'hash-object', '-w', '--no-filters', path)
    await git(dir, 'update-index', '--add', '--cacheinfo', `100644,${blob},${path}`)
  }
  await git(dir, 'commit', '--quiet', '--message', 'first')
  const commit = await git(dir, 'rev-parse', 'HEAD')
  const source = { name: 'common', git: `file://${dir}`, commit }
  const found = await fetchModuleSource(source, await temporaryDir())
  const read = Object.keys(files).map(async path => [path, await readFile(join(found, path), 'utf8')])
  expect(Object.fromEntries(await Promise.all(read))).toEqual(files)
})

test('submodules are not followed', async () => {
  const other = await upstream()
  const repository = await upstream()
  await git(repository.dir, '-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', other.url, 'modules/sub')
  const commit = await commitAll(repository.dir, 'with a submodule')
  const dir = await fetchModuleSource(sourceOf(repository, { commit }), await temporaryDir())
  expect(await readdir(join(dir, 'sub'))).toEqual([])
  expect([...(await readModules(dir)).keys()]).toEqual(['munge', 'slurm'])
})

test('links that lead out are unpacked, but refused when the modules are read', async () => {
  const repository = await upstream()
  await symlink('/etc/passwd', join(repository.dir, 'modules/slurm/passwd'))
  const commit = await commitAll(repository.dir, 'with a link')
  const dir = await fetchModuleSource(sourceOf(repository, { commit }), await temporaryDir())
  const { details } = await failureOf(() => readModules(dir, 'common'))
  expect(details).toEqual(['common:slurm/passwd:1:1: is a symbolic link that leads out of the module'])
})

test('a git that was started for another repository does not confuse it', async () => {
  const repository = await upstream()
  const another = await upstream({ ...MODULES, 'README.md': 'another\n' })
  vi.stubEnv('GIT_DIR', join(another.dir, '.git'))
  try {
    const dir = await fetchModuleSource(sourceOf(repository), await temporaryDir())
    expect(await readdir(dir)).toEqual(['munge', 'slurm'])
  } finally {
    vi.stubEnv('GIT_DIR', undefined)
  }
  expect(await git(another.dir, 'for-each-ref', '--format=%(refname)')).toBe('refs/heads/main')
})

test('hooks of a template are not taken over', async () => {
  const repository = await upstream()
  const template = await directoryOf({ 'hooks/reference-transaction': '#!/bin/sh\nexit 1\n' })
  await chmod(join(template, 'hooks/reference-transaction'), 0o755)
  vi.stubEnv('GIT_TEMPLATE_DIR', template)
  try {
    const cache = await temporaryDir()
    await fetchModuleSource(sourceOf(repository), cache)
    const [made = ''] = await readdir(join(cache, 'git'))
    await expect(stat(join(cache, 'git', made, 'hooks'))).rejects.toMatchObject({ code: 'ENOENT' })
  } finally {
    vi.stubEnv('GIT_TEMPLATE_DIR', undefined)
  }
})

describe('refused', () => {
  test('a commit that is not in it', async () => {
    const repository = await upstream()
    const source = sourceOf(repository, { commit: '0123456789'.repeat(4) })
    const error = await failureOf(async () => fetchModuleSource(source, await temporaryDir()))
    expect(error).toMatchObject({
      code: 'MODULE_SOURCE',
      status: 502,
      message: `source common: ${repository.url} has no commit ${'0123456789'.repeat(4)}`,
    })
  })

  test('a folder that is not in it, or leads out of it', async () => {
    const repository = await upstream()
    await symlink('/etc', join(repository.dir, 'etc'))
    const commit = await commitAll(repository.dir, 'with a link')
    const cache = await temporaryDir()
    for (const path of ['none', 'README.md', 'etc']) {
      const error = await failureOf(() => fetchModuleSource(sourceOf(repository, { commit, path }), cache))
      expect(error.message).toBe(`source common: ${repository.url} has no folder ${path} in commit ${commit}`)
    }
  })

  test.each([
    [{ path: '../x' }, '../x is not a path inside the repository'],
    [{ path: '/etc' }, '/etc is not a path inside the repository'],
    [{ path: 'a/./b' }, 'a/./b is not a path inside the repository'],
    [{ commit: 'main' }, 'main is not a whole commit id (40 hex digits)'],
    [{ commit: 'ABCDEF0123'.repeat(4) }, `${'ABCDEF0123'.repeat(4)} is not a whole commit id (40 hex digits)`],
    [{ commit: '--upload-pack=x' }, '--upload-pack=x is not a whole commit id (40 hex digits)'],
  ])('%j', async (more, why) => {
    const source = { name: 'common', git: 'file:///nowhere', commit: 'a'.repeat(40), ...more }
    const error = await failureOf(async () => fetchModuleSource(source, await temporaryDir()))
    expect(error.message).toBe(`source common: file:///nowhere ${why}`)
  })

  test.each([
    ['ext::sh -c "touch $(pwd)/made"', /transport 'ext' not allowed/],
    ['http://127.0.0.1:1/x.git', /transport 'http' not allowed/],
    ['--upload-pack=touch made', /strange pathname/],
  ])('the address %s', async (address, why) => {
    const cache = await temporaryDir()
    const source = { name: 'common', git: address, commit: 'a'.repeat(40) }
    const error = await failureOf(() => fetchModuleSource(source, cache))
    expect(error.message).toBe(`source common: ${address} cannot be fetched`)
    expect(error.details.join('\n')).toMatch(why)
    const [made = ''] = await readdir(join(cache, 'git'))
    expect(await readdir(join(cache, 'git', made))).not.toContain('made')
  })

  test('an address that does not answer, without the password in it', async () => {
    const source = {
      name: 'common',
      git: 'https://someone:s3cret@127.0.0.1:1/x.git?token=t0ken',
      commit: 'a'.repeat(40),
    }
    const error = await failureOf(async () => fetchModuleSource(source, await temporaryDir()))
    expect(error.message).toBe('source common: https://127.0.0.1:1/x.git cannot be fetched')
    expect(error.details.join('\n')).toContain('127.0.0.1')
    const everything = [error.message, error.stack, error.cause, ...error.details].join('\n')
    expect(everything).not.toMatch(/s3cret|t0ken|someone/)
  })
})

test.each([
  ['https://host/x.git', 'https://host/x.git'],
  ['https://user:pass@host/x.git', 'https://host/x.git'],
  ['https://token@host/x.git', 'https://host/x.git'],
  ['HTTPS://us%40er:p@ss@host:8443/x.git?private_token=z#y', 'HTTPS://host:8443/x.git'],
  ['ssh://git@host/x.git', 'ssh://git@host/x.git'],
  ['ssh://git:pass@host/x.git', 'ssh://git@host/x.git'],
  ['git://host/x.git', 'git://host/x.git'],
  ['file:///srv/what?is#this@x', 'file:///srv/what?is#this@x'],
])('%s is told as %s', (address, expected) => {
  expect(withoutCredentials(address)).toBe(expected)
})
