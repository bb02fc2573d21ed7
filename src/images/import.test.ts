import { createHash } from 'node:crypto'
import { appendFile, chmod, mkdir, mkdtemp, readFile, readdir, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { exec } from '../lib/exec.ts'
import { type Files, failureOf, temporaryDir, writeFiles } from '../site/testing.ts'
import { packagesOf } from './content.ts'
import { exportImage } from './export.ts'
import { readFileList } from './file-list.ts'
import { type ImportOptions, type ImportSource, importImage } from './import.ts'
import { type ArtefactType, type Manifest, artefactOf } from './manifest.ts'
import type { ImageStore } from './store/store.ts'
import { makeStore, problems, publishImage } from './store/testing.ts'

const signal = new AbortController().signal
const TIME = 1_700_000_000
const CREATED = '2023-11-14T22:13:20Z'

/** Notes what it is told. */
function reporter(): { readonly report: ImportOptions['report']; readonly told: string[] } {
  const told: string[] = []
  let title = ''
  const report = {
    begin: (_: string, stage: string) => void (title = stage),
    output: () => {},
    note: () => {},
    end: (how: string) => void told.push(`${title}: ${how}`),
  }
  return { report, told }
}

const importAs = (
  store: ImageStore,
  name: string,
  source: ImportSource,
  more: Partial<ImportOptions> = {},
): ReturnType<typeof importImage> =>
  importImage({ name, source, arch: 'amd64', cwd: '/', store, report: reporter().report, signal, ...more })

const ROOT: Files = {
  'etc/os-release': 'ID=tiny\nVERSION_ID=1\nPRETTY_NAME="Tiny 1"\n',
  'etc/motd': 'hello\n',
  'bin/tool': '#!/bin/sh\n',
  'var/lib/dpkg/status':
    'Package: tool\nStatus: install ok installed\nVersion: 1.0\nArchitecture: all\nInstalled-Size: 4\n\n',
}

/** A root as a directory, an archive, a squashfs and a container image, all of one time. */
let sources: Readonly<Record<'tree' | 'tar' | 'tgz' | 'squashfs' | 'oci', string>>

beforeAll(async () => {
  const dir = await mkdtemp(join(tmpdir(), 'muster-import-'))
  const tree = join(dir, 'root')
  await mkdir(tree)
  await chmod(tree, 0o755)
  await writeFiles(tree, ROOT)
  await chmod(join(tree, 'bin/tool'), 0o755)
  await exec('find', [tree, '-exec', 'touch', `--date=@${TIME}`, '{}', '+'])
  const [tar, tgz, squashfs, layout] = ['root.tar', 'root.tar.gz', 'root.squashfs', 'layout'].map(name =>
    join(dir, name),
  ) as [string, string, string, string]
  await exec('tar', ['--create', '--file', tar, '--directory', tree, '.'])
  await exec('tar', ['--create', '--gzip', '--file', tgz, '--directory', tree, '.'])
  await exec('mksquashfs', [tree, squashfs, '-quiet', '-no-progress', '-all-root'])
  await exec('skopeo', ['--insecure-policy', 'copy', '--quiet', `tarball:${tar}`, `oci:${layout}:a`])
  for (const path of [tar, tgz, squashfs, layout]) await utimes(path, TIME, TIME)
  sources = { tree, tar, tgz, squashfs, oci: `oci:${layout}:a` }
  return () => rm(dir, { recursive: true, force: true })
})

const typesOf = (manifest: Manifest): ArtefactType[] => manifest.artefacts.map(({ type }) => type)

describe('what was built elsewhere', () => {
  test('a directory becomes an image like our own', async () => {
    await using world = await makeStore()
    const { store } = world
    const { report, told } = reporter()
    const { digest, manifest } = await importAs(store, 'tiny', { kind: 'tree', path: sources.tree }, { report })
    expect(manifest).toMatchObject({
      name: 'tiny',
      arch: 'amd64',
      created: CREATED,
      os: { id: 'tiny', version: '1', name: 'Tiny 1' },
    })
    expect(manifest.source).toBeUndefined()
    expect(manifest.kernel).toBeUndefined()
    expect(typesOf(manifest)).toEqual(['squashfs', 'cpio.zst', 'files', 'packages', 'sbom', 'log'])
    expect((await store.resolve('tiny')).digest).toBe(digest)
    expect((await readFileList(store, manifest)).map(({ path }) => path)).toEqual([
      '',
      'bin',
      'bin/tool',
      'etc',
      'etc/image-release',
      'etc/motd',
      'etc/os-release',
      'var',
      'var/lib',
      'var/lib/dpkg',
      'var/lib/dpkg/status',
    ])
    expect((await packagesOf(store, manifest)).map(({ name, version }) => [name, version])).toEqual([['tool', '1.0']])
    expect(await problems(store)).toEqual([])
    expect(told).toEqual(['from directory: made', 'pack: made'])
    expect(await readdir(join(world.dir, 'work'))).toEqual([])
  })

  test.each(['tar', 'tgz', 'oci'] as const)('%s: the same root gives the same files', async kind => {
    await using world = await makeStore()
    const { store } = world
    const source: ImportSource = { kind: kind === 'oci' ? 'oci' : 'tar', path: sources[kind] }
    const one = (await importAs(store, 'tiny', { kind: 'tree', path: sources.tree })).manifest
    const other = (await importAs(store, 'tiny', source)).manifest
    const files = async (manifest: Manifest): Promise<unknown> =>
      (await readFileList(store, manifest)).flatMap(entry =>
        entry.type === 'file' && entry.path !== 'etc/image-release'
          ? [[entry.path, entry.mode, entry.sha256, entry.mtime]]
          : [],
      )
    expect(await files(other)).toEqual(await files(one))
    expect(other.created).toBe(CREATED)
  })

  test('the list of files of a squashfs says all that is in it, also what other images are cleaned of', async () => {
    await using temporary = await makeStore()
    const { store } = temporary
    const dir = await temporaryDir()
    await writeFiles(join(dir, 'root'), {
      'etc/machine-id': 'abc\n',
      'etc/ssh/ssh_host_rsa_key': 'k',
      'etc/motd': 'hi\n',
    })
    await exec('mksquashfs', [join(dir, 'root'), join(dir, 's'), '-quiet', '-no-progress'])
    const { manifest } = await importAs(store, 'tiny', { kind: 'squashfs', path: join(dir, 's') })
    const listed = (await readFileList(store, manifest)).flatMap(one =>
      one.type === 'file' ? [`${one.path} ${one.size}`] : [],
    )
    expect(listed).toEqual(['etc/machine-id 4', 'etc/motd 3', 'etc/ssh/ssh_host_rsa_key 1'])
  })

  test('a squashfs is taken as it is, byte for byte', async () => {
    await using world = await makeStore()
    const { store } = world
    const { manifest } = await importAs(store, 'tiny', { kind: 'squashfs', path: sources.squashfs })
    const sha256 = createHash('sha256')
      .update(await readFile(sources.squashfs))
      .digest('hex')
    expect(artefactOf(manifest, 'squashfs')?.sha256).toBe(sha256)
    expect(typesOf(manifest)).toEqual(['squashfs', 'cpio.zst', 'files', 'packages', 'sbom', 'log'])
    expect((await readFileList(store, manifest)).map(({ path }) => path)).not.toContain('etc/image-release')
  })

  test('twice the same is the same image, and the second time nothing is unpacked', async () => {
    await using world = await makeStore()
    const { store } = world
    const first = await importAs(store, 'tiny', { kind: 'tar', path: sources.tar })
    const { report, told } = reporter()
    const second = await importAs(store, 'tiny', { kind: 'tar', path: sources.tar }, { report })
    expect(second.digest).toBe(first.digest)
    expect(told).toEqual(['from tar: cached', 'pack: made'])
    expect((await store.images('tiny')).length).toBe(1)
  })

  test('the same under another name is another image of the same files', async () => {
    await using world = await makeStore()
    const { store } = world
    const one = await importAs(store, 'one', { kind: 'squashfs', path: sources.squashfs })
    const two = await importAs(store, 'two', { kind: 'squashfs', path: sources.squashfs })
    expect(two.digest).not.toBe(one.digest)
    expect(two.manifest.inputs).not.toBe(one.manifest.inputs)
    expect(two.manifest.tree).toBe(one.manifest.tree)
  })

  test('paths are those of where one stands', async () => {
    await using world = await makeStore()
    const { manifest } = await importAs(
      world.store,
      'tiny',
      { kind: 'tree', path: 'root' },
      { cwd: join(sources.tree, '..') },
    )
    expect(manifest.created).toBe(CREATED)
  })
})

describe('a kernel and an initramfs that come with it', () => {
  test('are taken as they are; the kernel says what it is', async () => {
    await using world = await makeStore()
    const { store } = world
    const dir = await temporaryDir()
    const kernel = Buffer.alloc(0x1000)
    kernel.write('HdrS', 0x202, 'latin1')
    kernel.writeUInt16LE(0x300, 0x20e)
    kernel.write('6.1.0-tiny (x@y) #1', 0x500, 'latin1')
    await writeFile(join(dir, 'vmlinuz'), kernel)
    await writeFile(join(dir, 'initrd.img'), 'initrd')
    const given = { kernel: 'vmlinuz', initrd: 'initrd.img', cwd: dir }
    const { manifest } = await importAs(store, 'tiny', { kind: 'tree', path: sources.tree }, given)
    expect(manifest.kernel).toEqual({ version: '6.1.0-tiny', modules: [] })
    expect(typesOf(manifest).slice(0, 2)).toEqual(['kernel', 'initrd'])
    expect((await store.read(artefactOf(manifest, 'initrd')?.sha256 ?? '')).toString('utf8')).toBe('initrd')
    const without = (await importAs(store, 'tiny', { kind: 'tree', path: sources.tree })).manifest
    expect(without.inputs).not.toBe(manifest.inputs)
  })

  test('that are not there', async () => {
    await using world = await makeStore()
    const work = importAs(world.store, 'tiny', { kind: 'tree', path: sources.tree }, { kernel: '/nowhere/vmlinuz' })
    expect(await failureOf(() => work)).toBe('ARCHIVE_INVALID: /nowhere/vmlinuz cannot be read')
    expect(await world.store.names()).toEqual([])
  })
})

describe('what cannot be imported', () => {
  test.each<readonly [string, ImportSource, RegExp]>([
    ['a directory that is not there', { kind: 'tree', path: '/nowhere' }, /there is no directory \/nowhere/],
    ['an archive that is not there', { kind: 'tar', path: '/nowhere.tar' }, /there is no archive \/nowhere\.tar/],
    [
      'a squashfs that is not there',
      { kind: 'squashfs', path: '/nowhere.squashfs' },
      /^ARCHIVE_INVALID: \/nowhere\.squashfs cannot be read$/,
    ],
    [
      'an exported image that is none',
      { kind: 'exported', path: '/usr' },
      /^ARCHIVE_INVALID: \/usr holds no manifest\.json$/,
    ],
  ])('%s', async (_, source, words) => {
    await using world = await makeStore()
    expect(await failureOf(() => importAs(world.store, 'tiny', source))).toMatch(words)
    expect(await world.store.names()).toEqual([])
  })

  test.each(['', 'Tiny', '../tiny', 'a b'])('anything under the name %j', async name => {
    await using world = await makeStore()
    expect(await failureOf(() => importAs(world.store, name, { kind: 'tree', path: sources.tree }))).toBe(
      `USAGE: ${JSON.stringify(name)} is not a name for an image`,
    )
  })

  test.each(['tar', 'squashfs'] as const)('a %s that is none', async kind => {
    await using world = await makeStore()
    const path = join(await temporaryDir(), 'rubbish')
    await writeFile(path, 'this is neither an archive nor an image\n'.repeat(100))
    expect(await failureOf(() => importAs(world.store, 'tiny', { kind, path }))).toMatch(/^ARCHIVE_INVALID: /)
    expect(await world.store.names()).toEqual([])
    expect(await readdir(join(world.dir, 'work'))).toEqual([])
  })
})

/** An image exported by another store. */
async function exported(): Promise<{ readonly dir: string; readonly manifest: Manifest; readonly digest: string }> {
  await using world = await makeStore()
  const { digest, manifest } = await publishImage(world.store, 'compute', {
    kernel: 'vmlinuz',
    squashfs: 'root',
    log: 'ok',
  })
  const dir = join(await temporaryDir(), 'compute')
  await exportImage(world.store, { name: 'compute', digest, manifest }, 'directory', dir, signal)
  return { dir, manifest, digest }
}

describe('an image that was exported', () => {
  test('is the same image here', async () => {
    const { dir, manifest, digest } = await exported()
    await using world = await makeStore()
    const found = await importAs(world.store, 'compute', { kind: 'exported', path: dir })
    expect(found).toEqual({ digest, manifest })
    expect((await world.store.resolve('compute')).manifest).toEqual(manifest)
    expect(await problems(world.store)).toEqual([])
  })

  test('keeps its name: it is part of its digest', async () => {
    const { dir } = await exported()
    await using world = await makeStore()
    expect(await failureOf(() => importAs(world.store, 'gpu', { kind: 'exported', path: dir }))).toBe(
      `USAGE: ${dir} is the image compute, not gpu`,
    )
    expect(await world.store.names()).toEqual([])
  })

  test.each<readonly [string, (dir: string) => Promise<unknown>, RegExp]>([
    [
      'a file that was damaged on the way',
      dir => appendFile(join(dir, 'root.squashfs'), 'x'),
      /^DIGEST_MISMATCH: root\.squashfs is [0-9a-f]{64}, its manifest says [0-9a-f]{64}$/,
    ],
    ['a file that is missing', dir => rm(join(dir, 'kernel')), /^ARCHIVE_INVALID: .*\/kernel cannot be read$/],
    [
      'a manifest that is no JSON',
      dir => writeFile(join(dir, 'manifest.json'), '{'),
      /manifest\.json is no manifest of ours$/,
    ],
    [
      'a manifest of somebody else',
      dir => writeFile(join(dir, 'manifest.json'), '{"schemaVersion":2}'),
      /manifest\.json is no manifest of ours$/,
    ],
    [
      'a size that is not true',
      async dir => {
        const text = await readFile(join(dir, 'manifest.json'), 'utf8')
        await writeFile(join(dir, 'manifest.json'), text.replace('"size": 7', '"size": 8'))
      },
      /^IMAGE_INCOMPLETE: compute is not whole: kernel: [0-9a-f]{64} has 7 bytes, not 8$/,
    ],
  ])('is refused with %s, and nothing is published', async (_, damage, words) => {
    const { dir } = await exported()
    await damage(dir)
    await using world = await makeStore()
    expect(await failureOf(() => importAs(world.store, 'compute', { kind: 'exported', path: dir }))).toMatch(words)
    expect(await world.store.names()).toEqual([])
  })
})
