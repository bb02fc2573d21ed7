import { chmod, chown, lstat, mkdir, readFile, readdir, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { exec } from '../../lib/exec.ts'
import { directoryOf, failureOf, temporaryDir, writeFiles } from '../../site/testing.ts'
import { mergeLayers } from '../layers/merge.ts'
import { scanLayer } from '../layers/scan.ts'
import { cleanLayer, makeLayerDirectory } from './clean.ts'

const list = (...paths: string[]): Record<string, string> => Object.fromEntries(paths.map(path => [path, 'x']))

/** Files below a directory, whatever they are, in the order of their paths. */
async function filesIn(root: string): Promise<string[]> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true })
  return entries
    .filter(entry => !entry.isDirectory())
    .map(entry => join(entry.parentPath, entry.name).slice(root.length + 1))
    .sort()
}

const looks = async (path: string): Promise<string> => {
  const { mode, uid, gid } = await stat(path)
  return `${(mode & 0o7777).toString(8)} ${uid}:${gid}`
}

const LEFT_BEHIND = {
  logs: list('var/log/dpkg.log', 'var/log/apt/term.log', 'var/log/dnf.rpm.log', 'var/log/alternatives.log'),
  caches: list(
    'var/cache/apt/archives/a.deb',
    'var/cache/dnf/x/y',
    'var/cache/man/index.db',
    'var/cache/ldconfig/aux-cache',
  ),
  'lists of packages': list('var/lib/apt/lists/mirror_InRelease', 'var/lib/apt/lists/partial/x'),
  'backups and locks': list(
    'etc/passwd-',
    'etc/shadow-',
    'etc/.pwd.lock',
    'var/lib/dpkg/status-old',
    'var/lib/dpkg/lock-frontend',
  ),
  'what rpm keeps beside its database': list(
    'var/lib/rpm/.rpm.lock',
    'var/lib/rpm/rpmdb.sqlite-wal',
    'usr/lib/sysimage/rpm/rpmdb.sqlite-shm',
  ),
  'identities that must be each machine’s own': list(
    'etc/ssh/ssh_host_ed25519_key',
    'etc/ssh/ssh_host_ed25519_key.pub',
    'etc/munge/munge.key',
    'var/lib/dbus/machine-id',
    'var/lib/systemd/random-seed',
  ),
  'what was only there meanwhile': list(
    'tmp/a',
    'tmp/.hidden/b',
    'tmp/two\nlines',
    'run/lock/c',
    'var/tmp/d',
    'root/.cache/e',
    'root/.bash_history',
  ),
}

describe('what is taken away', () => {
  test.each(Object.entries(LEFT_BEHIND))('%s', async (_, files) => {
    const root = await directoryOf(files)
    await cleanLayer(root)
    expect(await filesIn(root)).toEqual([])
  })

  test('the directories they were in stay', async () => {
    const root = await directoryOf(list('tmp/a', 'var/cache/apt/archives/a.deb', 'var/lib/apt/lists/a'))
    await cleanLayer(root)
    expect((await readdir(root)).sort()).toEqual(['tmp', 'var'])
    expect(await readdir(join(root, 'var/cache/apt'))).toEqual([])
  })
})

test('everything else stays as it is', async () => {
  const files = list(
    'etc/passwd',
    'etc/ssh/ssh_config',
    'etc/ssh/sshd_config.d/ssh_host_x',
    'etc/munge/other',
    'root/.bashrc',
    'srv/tmp/a',
    'usr/lib/sysimage/rpm/rpmdb.sqlite',
    'var/cache/debconf/config.dat',
    'var/lib/dpkg/status',
    'var/lib/dpkg/info/a.lock',
    'var/log/dpkgxlog',
    'var/log/wtmp',
    'varxlog/dpkg.log',
  )
  const root = await directoryOf(files)
  await cleanLayer(root)
  expect(await filesIn(root)).toEqual(Object.keys(files).sort())
})

describe('links are not followed', () => {
  test('on the way', async () => {
    const outside = await directoryOf(list('a', 'log/dpkg.log'))
    const root = await temporaryDir()
    for (const name of ['tmp', 'run', 'var']) await symlink(outside, join(root, name))
    await cleanLayer(root)
    expect(await filesIn(outside)).toEqual(['a', 'log/dpkg.log'])
  })

  test('at the end: the link itself goes', async () => {
    const outside = await directoryOf(list('a'))
    const root = await directoryOf({ 'tmp/x': '' })
    await symlink(outside, join(root, 'tmp/link'))
    await cleanLayer(root)
    expect(await readdir(join(root, 'tmp'))).toEqual([])
    expect(await filesIn(outside)).toEqual(['a'])
  })

  test('nor is one that stands for the machine’s id', async () => {
    const outside = await directoryOf({ id: 'abc\n' })
    const root = await directoryOf({ 'etc/x': '' })
    await symlink(join(outside, 'id'), join(root, 'etc/machine-id'))
    await cleanLayer(root)
    expect(await readFile(join(outside, 'id'), 'utf8')).toBe('abc\n')
    expect((await lstat(join(root, 'etc/machine-id'))).isSymbolicLink()).toBe(true)
  })
})

describe('the machine’s id', () => {
  test('is emptied, so that each machine gets its own', async () => {
    const root = await directoryOf({ 'etc/machine-id': 'b08dfa6083e7567a1921a715000001fb\n' })
    await cleanLayer(root)
    expect(await readFile(join(root, 'etc/machine-id'), 'utf8')).toBe('')
  })

  test('is not made where there is none', async () => {
    const root = await directoryOf({ 'etc/x': '' })
    await cleanLayer(root)
    expect(await filesIn(root)).toEqual(['etc/x'])
  })

  test('stays away where a layer took it away', async () => {
    const root = await directoryOf({ 'etc/x': '' })
    await exec('mknod', [join(root, 'etc/machine-id'), 'c', '0', '0'])
    await cleanLayer(root)
    expect((await lstat(join(root, 'etc/machine-id'))).isCharacterDevice()).toBe(true)
  })
})

test('an empty layer is clean', async () => {
  const root = await temporaryDir()
  await cleanLayer(root)
  expect(await readdir(root)).toEqual([])
})

async function below() {
  const root = await temporaryDir()
  await writeFiles(root, { 'srv/data/x': '', 'srv/file': '' })
  await chmod(join(root, 'srv'), 0o2770)
  await chown(join(root, 'srv/data'), 1000, 900)
  await chmod(join(root, 'srv/data'), 0o1777)
  return mergeLayers([{ root, ...(await scanLayer(root, 0)) }])
}

describe('a directory of a layer', () => {
  test('looks as it does below, with those above it', async () => {
    const upper = await temporaryDir()
    const before = await looks(upper)
    await makeLayerDirectory(upper, 'srv/data', await below())
    expect(await looks(join(upper, 'srv'))).toBe('2770 0:0')
    expect(await looks(join(upper, 'srv/data'))).toBe('1777 1000:900')
    expect(await looks(upper)).toBe(before)
  })

  test('is root’s where there is none below, whatever the umask', async () => {
    const upper = await temporaryDir()
    const umask = process.umask(0o077)
    try {
      await makeLayerDirectory(upper, 'opt/new/deep', await below())
    } finally {
      process.umask(umask)
    }
    for (const path of ['opt', 'opt/new', 'opt/new/deep']) expect(await looks(join(upper, path))).toBe('755 0:0')
  })

  test('is left alone where it is there already', async () => {
    const upper = await temporaryDir()
    await mkdir(join(upper, 'srv'))
    await chmod(join(upper, 'srv'), 0o700)
    await writeFile(join(upper, 'srv/kept'), '')
    await makeLayerDirectory(upper, 'srv/data', await below())
    expect(await looks(join(upper, 'srv'))).toBe('700 0:0')
    expect((await readdir(join(upper, 'srv'))).sort()).toEqual(['data', 'kept'])
  })

  test('is none where something else has its place', async () => {
    const upper = await directoryOf({ 'srv/data': 'a file' })
    await symlink('/etc', join(upper, 'link'))
    const tree = await below()
    expect(await failureOf(() => makeLayerDirectory(upper, 'srv/data/deep', tree))).toBe(
      'BUILD_FAILED: /srv/data is not a directory',
    )
    expect(await failureOf(() => makeLayerDirectory(upper, 'link', tree))).toBe(
      'BUILD_FAILED: /link is not a directory',
    )
  })

  test('of nothing is the layer itself', async () => {
    const upper = await temporaryDir()
    await makeLayerDirectory(upper, '', await below())
    expect(await readdir(upper)).toEqual([])
  })
})
