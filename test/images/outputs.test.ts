import { createHash } from 'node:crypto'
import { chmod, link, mkdir, readFile, writeFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Manifest, manifestText } from '../../src/images/manifest.ts'
import { exec } from '../../src/lib/exec.ts'
import { TINY_RPMS, rpmRepository } from './rpm.ts'
import { type Built, type Lab, errorOf, hintOf, makeLab, writeTree } from './testing.ts'

const FORMS = ['squashfs', 'cpio.zst', 'cpio.gz', 'erofs'] as const

let lab: Lab
let built: Built

beforeAll(async () => {
  lab = await makeLab()
  // One of everything a root may hold.
  await exec('mkfifo', [lab.path('root/var/fifo')])
  await link(lab.path('root/etc/passwd'), lab.path('root/etc/passwd.link'))
  await writeFile(lab.path('root/usr/bin/ping'), 'ping')
  await exec('setcap', ['cap_net_raw+ep', lab.path('root/usr/bin/ping')])
  await writeFile(lab.path('root/usr/bin/su'), 'su')
  await chmod(lab.path('root/usr/bin/su'), 0o4755)
  await chmod(lab.path('root/tmp'), 0o1777)
  await mkdir(lab.path('root/etc/ünïcode name'))
  await writeFile(lab.path('root/etc/ünïcode name/file'), 'ü')
  await writeFile(lab.path('root/etc/empty'), '')
  await writeTree(lab.root, {
    'boot/vmlinuz-6.1.0-9': 'nine',
    'boot/vmlinuz-6.1.0-10': 'ten',
    'lib/modules/6.1.0-10/modules.builtin': 'kernel/drivers/net/ethernet/mellanox/mlx5/core/mlx5_core.ko\n',
    'usr/lib/modules/6.9.0/vmlinuz': 'other',
  })
  await lab.recipe('all', `from: { directory: ../../../root }\noutputs: [${FORMS.join(', ')}]\n`)
  built = await lab.build('all')
})
afterAll(() => lab[Symbol.asyncDispose]())

async function unpack(form: (typeof FORMS)[number], file: string, to: string): Promise<void> {
  await mkdir(to)
  const commands = {
    squashfs: ['unsquashfs -quiet -no-progress -force -dest "$2" "$1"'],
    'cpio.zst': ['cd "$2"; zstd -dc "$1" | cpio --extract --make-directories --quiet --preserve-modification-time'],
    'cpio.gz': ['cd "$2"; gzip -dc "$1" | cpio --extract --make-directories --quiet --preserve-modification-time'],
    erofs: ['fsck.erofs --extract="$2" --overwrite --preserve "$1" >/dev/null'],
  }
  await exec('sh', ['-euc', ...commands[form], 'sh', file, to])
}

/** Everything about every file, one line each; of directories no size, which is the file system's own business. */
async function describeTree(dir: string): Promise<string[]> {
  const format = ['%P %y %m %U:%G %n', '%s', '%l\\n']
  const { stdout } = await exec('find', [dir, '-printf', format.join(' ')], { env: { LC_ALL: 'C.UTF-8' } })
  const sums = await exec('sh', ['-c', 'cd "$1"; find . -type f -exec sha256sum {} +', 'sh', dir])
  return `${stdout.toString('utf8')}${sums.stdout.toString('utf8')}`
    .split('\n')
    .map(line => (/ d \d+ /.test(line) ? line.replace(/ \d+ \d+ $/, '') : line))
    .sort()
}

/** fsck.erofs makes two files of two names of one file, and loses the set-user-ID bit: those are looked up. */
const asFsckExtracts = (line: string): string => line.replace(/ 4755 /, ' 755 ').replace(/( f \d+ \S+) \d+ /, '$1 1 ')

/** Inodes lie in slots of 32 bytes behind the block the superblock names (Documentation/filesystems/erofs.rst). */
async function inodeOf(file: string, path: string): Promise<{ links: number; mode: number }> {
  const text = (await exec('dump.erofs', [`--path=${path}`, file])).stdout.toString('utf8')
  const [, number, links] = /^NID: (\d+) +Links: (\d+)/m.exec(text) ?? []
  const bytes = await readFile(file)
  const start = bytes.readUInt32LE(1024 + 40) * 2 ** bytes.readUInt8(1024 + 12)
  return { links: Number(links), mode: bytes.readUInt16LE(start + Number(number) * 32 + 4) }
}

describe('every form of the root', () => {
  let expected: string[]
  beforeAll(async () => {
    await unpack('squashfs', lab.artefact(built, 'squashfs'), lab.path('out-squashfs'))
    expected = await describeTree(lab.path('out-squashfs'))
  })

  it('squashfs holds what it was made from, and the name of the image', async () => {
    await writeFile(lab.path('root/etc/image-release'), await lab.cat(built, 'etc/image-release'))
    expect(expected).toEqual(await describeTree(lab.root))
  })

  it.each(['cpio.zst', 'cpio.gz'] as const)('%s holds the same, and the /init that a kernel looks for', async form => {
    await unpack(form, lab.artefact(built, form), lab.path(`out-${form}`))
    const found = await describeTree(lab.path(`out-${form}`))
    expect(found).toEqual([...expected, 'init l 777 0:0 1 9 sbin/init'].sort())
  })

  it('erofs holds the same', async () => {
    const file = lab.artefact(built, 'erofs')
    await unpack('erofs', file, lab.path('out-erofs'))
    expect(await describeTree(lab.path('out-erofs'))).toEqual(expected.map(asFsckExtracts))
    expect(await inodeOf(file, '/etc/passwd.link')).toEqual({ links: 2, mode: 0o100_644 })
    expect(await inodeOf(file, '/usr/bin/su')).toEqual({ links: 1, mode: 0o104_755 })
  })

  it('squashfs keeps capabilities', async () => {
    const { stdout } = await exec('getcap', [lab.path('out-squashfs/usr/bin/ping')])
    expect(stdout.toString('utf8')).toMatch(/ cap_net_raw[=+]+ep\n$/)
  })
})

describe('the manifest', () => {
  it('names every artefact by the digest of its bytes, and is named by the digest of its text', async () => {
    const manifest = Manifest.parse(built.manifest)
    expect(built.digest).toBe(`sha256:${createHash('sha256').update(manifestText(manifest)).digest('hex')}`)
    const types = manifest.artefacts.map(one => one.type)
    expect(types).toEqual(['kernel', 'initrd', ...FORMS, 'files', 'packages', 'sbom', 'log', 'lock'])
    for (const { type, sha256, size } of manifest.artefacts) {
      const bytes = await readFile(lab.artefact(built, type))
      expect([createHash('sha256').update(bytes).digest('hex'), bytes.length]).toEqual([sha256, size])
    }
  })

  it('says what the image is', () => {
    expect(built.manifest).toMatchObject({
      schema: 'muster.image/1',
      name: 'all',
      os: { id: 'tiny', version: '1', name: 'Tiny 1' },
      kernel: { version: '6.9.0', modules: [] },
    })
    expect(built.manifest.base).toBeUndefined()
  })
})

describe('the kernel', () => {
  const from = 'from: { directory: ../../../root }\noutputs: [squashfs]'

  it.each([
    ['kernel: { version: "6.1.*", modules: [mlx5_core] }', { version: '6.1.0-10', modules: ['mlx5_core'] }, 'ten'],
    ['kernel: { version: 6.1.0-9 }', { version: '6.1.0-9', modules: [] }, 'nine'],
  ])('%s', async (line, kernel, content) => {
    await lab.recipe('kernel', `${from}\n${line}\n`)
    const one = await lab.build('kernel')
    expect(one.manifest.kernel).toEqual(kernel)
    expect(await readFile(lab.artefact(one, 'kernel'), 'utf8')).toBe(content)
  })

  it('is none where the recipe says so', async () => {
    await lab.recipe('kernel', `${from}\nkernel: none\n`)
    const { manifest } = await lab.build('kernel')
    expect(manifest.kernel).toBeUndefined()
    expect(manifest.artefacts.map(one => one.type)).not.toContain('kernel')
  })

  it('that is not in the image is an error that names those that are', async () => {
    await lab.recipe('kernel', `${from}\nkernel: { version: "5.*" }\n`)
    const ran = await lab.fails('kernel')
    expect(errorOf(ran)).toBe('kernel: kernel: no kernel 5.* in the image')
    expect(hintOf(ran)).toBe('there is 6.1.0-10, 6.1.0-9, 6.9.0')
  })
})

describe('the list of packages', () => {
  it('is an SPDX document with one package each and what installed it', async () => {
    await rpmRepository(lab.path('rpms'), TINY_RPMS)
    const repositories = `repositories: { tiny: { url: "file://${lab.path('rpms')}", trusted: true } }`
    await lab.recipe('rpms', `from: { dnf: 9 }\n${repositories}\npackages: [tiny-shell]\noutputs: [squashfs]\n`)
    const one = await lab.build('rpms')
    const sbom = JSON.parse(await readFile(lab.artefact(one, 'sbom'), 'utf8')) as Record<string, unknown>
    expect(sbom).toMatchObject({ spdxVersion: 'SPDX-2.3', dataLicense: 'CC0-1.0', SPDXID: 'SPDXRef-DOCUMENT' })
    const packages = sbom['packages'] as { name: string; versionInfo?: string; licenseDeclared?: string }[]
    expect(packages.map(({ name, versionInfo }) => [name, versionInfo])).toEqual(
      expect.arrayContaining([
        ['tiny-release', '1-1'],
        ['tiny-shell', '1-1'],
      ]),
    )
    const { stdout } = await lab.muster(['image', 'show', 'rpms', '--packages'])
    expect(stdout).toMatch(/^tiny-shell +1-1 +\S+ +[\d.]+ MB$/m)
  })
})

describe('the limit', () => {
  it('fails a build with the largest packages and directories, before anything is packed', async () => {
    const repositories = `repositories: { tiny: { url: "file://${lab.path('rpms')}", trusted: true } }`
    const recipe = `from: { dnf: 9 }\n${repositories}\npackages: [tiny-shell]\noutputs: [squashfs]\nlimits: { size: 1 MB }\n`
    await lab.recipe('large', recipe)
    const before = await lab.images()
    const ran = await lab.fails('large')
    expect(errorOf(ran)).toMatch(/^large has 2\.\d MB, its limit is 1\.0 MB$/)
    expect(hintOf(ran)).toBe('take something out: prune, fewer packages; or raise limits.size in the recipe')
    expect(ran.stderr).toMatch(/^largest packages\n +[\d.]+ MB {2}tiny-shell 1-1$/m)
    expect(ran.stderr).toMatch(/^largest directories\n +[\d.]+ MB {2}\/usr\/bin$/m)
    expect(ran.stderr).not.toMatch(/^ {2}pack /m)
    expect(await lab.images()).toEqual(before)
  })
})

describe('what is pruned', () => {
  it('is gone: paths with stars, and locales, documentation and caches by name', async () => {
    await writeTree(lab.root, {
      'usr/share/doc/a/README': '',
      'usr/share/doc/a/copyright': '',
      'usr/share/man/man1/a.1': '',
      'usr/share/locale/de/a.mo': '',
      'usr/lib/locale/C.utf8/x': '',
      'usr/lib/locale/de_DE/x': '',
      'var/cache/a/b': '',
      'opt/one/deep/file.a': '',
      'opt/one/file.b': '',
    })
    await lab.recipe(
      'pruned',
      'from: { directory: ../../../root }\noutputs: [squashfs]\nprune: [locales, documentation, caches, "/opt/**/*.a", "/b?n/w*"]\n',
    )
    const paths = Object.keys(await lab.list(await lab.build('pruned')))
    const where = /^\/(usr\/share|usr\/lib\/locale|var\/cache|opt)/
    expect(paths.filter(path => where.test(path))).toEqual([
      '/opt',
      '/opt/one',
      '/opt/one/deep',
      '/opt/one/file.b',
      '/usr/lib/locale',
      '/usr/lib/locale/C.utf8',
      '/usr/lib/locale/C.utf8/x',
      '/usr/share',
      '/usr/share/doc',
      '/usr/share/doc/a',
      '/usr/share/doc/a/copyright',
      '/usr/share/locale',
      '/usr/share/man',
      '/var/cache',
      '/var/cache/a',
    ])
    expect(paths.filter(path => path.startsWith('/bin/w'))).toEqual([])
  })
})
