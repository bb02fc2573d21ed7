import { readFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { checkSite } from './check.ts'
import { initRepository } from './git.ts'
import { initSite } from './init.ts'
import { jsonSchemas } from './json-schema.ts'
import { openSite } from './site.ts'
import { directorySource } from './source.ts'
import {
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
import { openWorkspace } from './workspace.ts'

beforeAll(isolateGit)

const FILES = [
  '.schema/cluster.json',
  '.schema/group.json',
  '.schema/image.json',
  '.schema/module.json',
  '.schema/nodes.json',
  '.schema/site.json',
  'files/motd.j2',
  'groups/compute.yaml',
  'images/compute/image.yaml',
  'nodes.yaml',
  'site.yaml',
]

const problems = async (dir: string): Promise<string[]> => format(checkSite(await openSite(await directorySource(dir))))

test('a site in a new directory: its files, one commit, no problems', async () => {
  const dir = join(await temporaryDir(), 'new/demo')
  expect(await initSite(dir, 'demo')).toEqual(FILES)
  expect(await git(dir, 'ls-tree', '-r', '--name-only', 'HEAD')).toBe(FILES.join('\n'))
  expect(await git(dir, 'log', '--format=%s')).toBe('Begin site demo')
  expect(await git(dir, 'status', '--porcelain')).toBe('')
  expect(await problems(dir)).toEqual([])
})

test('what its nodes get', async () => {
  const dir = join(await temporaryDir(), 'demo')
  await initSite(dir, 'my-lab')
  const site = await openSite(await directorySource(dir))
  expect(site.name).toBe('my-lab')
  expect([...site.nodes.keys()]).toEqual(['n001', 'n002', 'n003', 'n004'])
  expect(valueOf(site, 'n003')).toEqual({
    cluster: 'my-lab',
    groups: ['compute'],
    domain: 'my-lab.cluster',
    boot: { image: 'compute', root: 'ram', args: ['console=ttyS0,115200'] },
    files: { '/etc/motd': { source: 'motd.j2', blob: site.files.blobs.get('motd.j2') } },
    update: { maxUnavailable: '25%', healthy: '3m' },
    location: { switch: 'sw1', port: '3' },
    interfaces: { prov: { address: '10.77.1.3' } },
  })
  expect((await readdir(dir, { recursive: true })).join('\n')).not.toContain('SITE_NAME')
})

test('the schemas for editors are those of this version', async () => {
  const dir = join(await temporaryDir(), 'demo')
  await initSite(dir, 'demo')
  for (const [kind, schema] of Object.entries(jsonSchemas()))
    expect(JSON.parse(await readFile(join(dir, `.schema/${kind}.json`), 'utf8'))).toEqual(schema)
})

test('it can be edited at once', async () => {
  const dir = join(await temporaryDir(), 'demo')
  await initSite(dir, 'demo')
  const workspace = await openWorkspace(dir)
  await workspace.change(
    () => new Map([['nodes.yaml', [{ op: 'set', path: ['n005', 'groups'], value: ['compute'] }]]]),
    'Add n005',
  )
  expect(await git(dir, 'log', '--format=%s')).toBe('Add n005\nBegin site demo')
})

describe('where', () => {
  test('an empty directory', async () => {
    const dir = await directoryOf({})
    expect(await initSite(dir, 'demo')).toEqual(FILES)
  })

  test('an empty repository', async () => {
    const dir = await directoryOf({})
    await initRepository(dir)
    await initSite(dir, 'demo')
    expect(await git(dir, 'log', '--format=%s')).toBe('Begin site demo')
  })

  test('a folder of a repository: committed there, beside what others have not finished', async () => {
    const dir = await repositoryOf({ 'README.md': 'x' })
    await writeFiles(dir, { 'README.md': 'y', 'new.txt': '', 'staged.txt': '' })
    await git(dir, 'add', 'staged.txt')
    await initSite(join(dir, 'site'), 'demo')
    expect(await git(dir, 'log', '--format=%s')).toBe('Begin site demo\nfirst')
    expect(await git(dir, 'show', '--format=', '--name-only', 'HEAD')).toBe(
      FILES.map(file => `site/${file}`).join('\n'),
    )
    expect(await git(dir, 'status', '--porcelain')).toBe(' M README.md\nA  staged.txt\n?? new.txt')
  })

  test.each([['README.md'], ['.hidden'], ['sub/file']])('not where something is already: %s', async file => {
    const dir = await directoryOf({ [file]: '' })
    expect(await failureOf(() => initSite(dir, 'demo'))).toBe(`SITE_EXISTS: ${dir} is not empty`)
    expect(await readdir(dir)).toEqual([file.split('/')[0]])
  })

  test('not twice', async () => {
    const dir = join(await temporaryDir(), 'demo')
    await initSite(dir, 'demo')
    expect(await failureOf(() => initSite(dir, 'demo'))).toBe(`SITE_EXISTS: ${dir} is not empty`)
  })
})

describe('the name', () => {
  test.each(['', 'My Site', 'Demo', 'demo_1', '-demo', 'demo-', 'demo.org', 'café', '../demo', 'x'.repeat(64)])(
    'refuses %j',
    async name => {
      const dir = join(await temporaryDir(), 'demo')
      expect(await failureOf(() => initSite(dir, name))).toBe(
        `USAGE: ${name} is not a site name (lower-case letters, digits and -)`,
      )
      expect(await readdir(join(dir, '..'))).toEqual([])
    },
  )

  test.each(['a', 'demo', 'x1', 'a-b--c', '1st', 'x'.repeat(63), '2024', '1e3', '0x1f', 'true', 'null'])(
    'takes %s, and makes a site without problems',
    async name => {
      const dir = join(await temporaryDir(), 'site')
      await initSite(dir, name)
      expect(await problems(dir)).toEqual([])
      expect((await openSite(await directorySource(dir))).name).toBe(name)
    },
  )
})
