import { chmod, cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { exec } from '../../lib/exec.ts'
import { buildInitramfs, type InitramfsOptions } from './build.ts'
import { APPLETS, findBusybox } from './busybox.ts'
import { initramfsInputs } from './inputs.ts'
import { SCRIPTS } from './scripts.ts'
import { moduleFile, sourceTree, unpacked } from './testing.ts'

let dir: string
let busybox: string
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'muster-build-initramfs-'))
  busybox = await findBusybox('amd64')
})
afterAll(() => rm(dir, { recursive: true }))

const KERNEL = '6.1.0-9-test'
const MODULES = `usr/lib/modules/${KERNEL}`

/** A kernel with a few modules, in every form distributions have them, and what depmod says of them. */
const FILES = async (): Promise<Record<string, string | Buffer>> => ({
  [`boot/config-${KERNEL}`]: 'CONFIG_RD_GZIP=y\nCONFIG_RD_ZSTD=y\n',
  [`${MODULES}/kernel/net/8021q.ko.gz`]: gzipSync(moduleFile(['alias=rtnl-link-vlan', 'depends=garp,mrp'])),
  [`${MODULES}/kernel/net/garp.ko.zst`]: zstdCompressSync(moduleFile(['depends=stp'])),
  [`${MODULES}/kernel/net/mrp.ko`]: moduleFile(['depends=']),
  [`${MODULES}/kernel/net/stp.ko`]: moduleFile(['depends=']),
  [`${MODULES}/kernel/drivers/virtio-net.ko`]: moduleFile(['alias=virtio:d00000001v*', 'depends=net_failover']),
  [`${MODULES}/kernel/drivers/net_failover.ko`]: moduleFile(['depends=']),
  [`${MODULES}/kernel/drivers/r8169.ko.xz`]: (
    await exec('xz', ['-c'], {
      input: moduleFile(['alias=pci:v000010ECd00008168sv*', 'softdep=pre: realtek crc post: late']),
    })
  ).stdout,
  [`${MODULES}/kernel/drivers/realtek.ko`]: moduleFile(['alias=mdio:0000*']),
  [`${MODULES}/kernel/crypto/crc_generic.ko`]: moduleFile(['alias=crc']),
  [`${MODULES}/kernel/drivers/bnx2x.ko`]: moduleFile([
    'firmware=bnx2x/e2.fw',
    'firmware=bnx2x/gone.fw',
    'firmware=../../etc/shadow',
  ]),
  [`${MODULES}/kernel/drivers/tg3.ko`]: moduleFile(['description=of the kernel']),
  [`${MODULES}/updates/tg3.ko`]: moduleFile(['description=of the vendor']),
  [`${MODULES}/kernel/drivers/nvme.ko`]: moduleFile(['alias=pci:v*d*sv*sd*bc01sc08i02*']),
  [`${MODULES}/kernel/fs/lustre.ko`]: moduleFile(['depends=']),
  [`${MODULES}/kernel/fs/squashfs.ko`]: moduleFile(['alias=fs-squashfs']),
  [`${MODULES}/kernel/sound/snd.ko`]: moduleFile(['depends=']),
  [`${MODULES}/modules.dep`]: [
    'kernel/net/8021q.ko.gz: kernel/net/garp.ko.zst kernel/net/stp.ko kernel/net/mrp.ko',
    'kernel/net/garp.ko.zst: kernel/net/stp.ko',
    'kernel/net/mrp.ko:',
    'kernel/net/stp.ko:',
    'kernel/drivers/virtio-net.ko: kernel/drivers/net_failover.ko',
    'kernel/drivers/net_failover.ko:',
    'kernel/drivers/r8169.ko.xz:',
    'kernel/drivers/realtek.ko:',
    'kernel/crypto/crc_generic.ko:',
    'kernel/drivers/bnx2x.ko:',
    'updates/tg3.ko:',
    'kernel/drivers/nvme.ko:',
    'kernel/fs/lustre.ko:',
    'kernel/fs/squashfs.ko:',
    'kernel/sound/snd.ko:',
    '',
  ].join('\n'),
  [`${MODULES}/modules.alias`]: 'alias crc crc_generic\nalias pci:v000010ECd00008168sv* r8169\n',
  [`${MODULES}/modules.builtin`]: 'kernel/drivers/block/loop.ko\nkernel/fs/overlayfs/overlay.ko\n',
  'usr/lib/firmware/bnx2x/e2.fw': '-> /usr/lib/firmware/bnx2x/e2-7.13.fw',
  'usr/lib/firmware/bnx2x/e2-7.13.fw': 'firmware',
  'usr/lib/firmware/other/x.fw': 'not asked for',
})

const KEY = `ed25519:${'A'.repeat(43)}=`

const build = async (
  files: Readonly<Record<string, string | Buffer>>,
  options: Partial<InitramfsOptions> = {},
): Promise<Buffer> =>
  buildInitramfs({
    tree: sourceTree(files, join(dir, 'contents')),
    kernel: KERNEL,
    arch: 'amd64',
    extraModules: [],
    keys: [],
    busybox,
    scripts: SCRIPTS,
    ...options,
  })

const withoutList = async (name: string): Promise<Record<string, string | Buffer>> => {
  const { [`${MODULES}/${name}`]: _, ...rest } = await FILES()
  return rest
}

const below = (found: ReadonlyMap<string, string>, path: string): string[] =>
  [...found].filter(([name, content]) => name.startsWith(`${path}/`) && content !== 'directory').map(([name]) => name)

describe('the modules in it', () => {
  test('are the usual ones the kernel has, what they need or like to have, uncompressed', async () => {
    const found = await unpacked(await build(await FILES()))
    const to = `lib/modules/${KERNEL}`
    expect(below(found, to)).toEqual([
      `${to}/kernel/crypto/crc_generic.ko`,
      `${to}/kernel/drivers/bnx2x.ko`,
      `${to}/kernel/drivers/net_failover.ko`,
      `${to}/kernel/drivers/nvme.ko`,
      `${to}/kernel/drivers/r8169.ko`,
      `${to}/kernel/drivers/realtek.ko`,
      `${to}/kernel/drivers/virtio-net.ko`,
      `${to}/kernel/fs/squashfs.ko`,
      `${to}/kernel/net/8021q.ko`,
      `${to}/kernel/net/garp.ko`,
      `${to}/kernel/net/mrp.ko`,
      `${to}/kernel/net/stp.ko`,
      `${to}/modules.alias`,
      `${to}/modules.alias.discover`,
      `${to}/modules.builtin`,
      `${to}/modules.dep`,
      `${to}/updates/tg3.ko`,
    ])
    expect(found.get(`${to}/kernel/net/8021q.ko`)).toBe(
      moduleFile(['alias=rtnl-link-vlan', 'depends=garp,mrp']).toString('latin1'),
    )
    // Depmod had chosen the vendor's.
    expect(found.get(`${to}/updates/tg3.ko`)).toContain('of the vendor')
  })

  test('come with lists for modprobe; what a module needs stands behind it', async () => {
    const found = await unpacked(await build(await FILES()))
    expect(found.get(`lib/modules/${KERNEL}/modules.dep`)).toBe(
      [
        'kernel/net/8021q.ko: kernel/net/mrp.ko kernel/net/garp.ko kernel/net/stp.ko',
        'kernel/drivers/bnx2x.ko:',
        'kernel/crypto/crc_generic.ko:',
        'kernel/net/garp.ko: kernel/net/stp.ko',
        'kernel/net/mrp.ko:',
        'kernel/drivers/net_failover.ko:',
        'kernel/drivers/nvme.ko:',
        'kernel/drivers/r8169.ko:',
        'kernel/drivers/realtek.ko:',
        'kernel/fs/squashfs.ko:',
        'kernel/net/stp.ko:',
        'updates/tg3.ko:',
        'kernel/drivers/virtio-net.ko: kernel/drivers/net_failover.ko',
        '',
      ].join('\n'),
    )
    expect(found.get(`lib/modules/${KERNEL}/modules.alias`)).toBe(
      [
        'alias rtnl-link-vlan 8021q',
        'alias crc crc_generic',
        'alias pci:v000010ECd00008168sv* r8169',
        'alias mdio:0000* realtek',
        'alias fs-squashfs squashfs',
        'alias virtio:d00000001v* virtio_net',
        '',
      ].join('\n'),
    )
    // Disks have to wait until a machine is looked at.
    expect(found.get(`lib/modules/${KERNEL}/modules.alias.discover`)).toBe('alias pci:v*d*sv*sd*bc01sc08i02* nvme\n')
    expect(found.get(`lib/modules/${KERNEL}/modules.builtin`)).toContain('overlay.ko')
  })

  test('are found without depmod as well: every module says what it needs', async () => {
    const found = await unpacked(await build(await withoutList('modules.dep')))
    expect(found.get(`lib/modules/${KERNEL}/modules.dep`)).toContain(
      'kernel/net/8021q.ko: kernel/net/mrp.ko kernel/net/garp.ko kernel/net/stp.ko\n',
    )
  })

  test('can be more: those the recipe names, which are loaded by name', async () => {
    const found = await unpacked(await build(await FILES(), { extraModules: ['lustre', 'loop'] }))
    expect(found.has(`lib/modules/${KERNEL}/kernel/fs/lustre.ko`)).toBe(true)
    expect(found.get('lib/muster/modules')).toBe('lustre\nloop\n')
  })

  test('a name of the recipe that the kernel lacks is an error, with a name it has', async () => {
    await expect(build(await FILES(), { extraModules: ['lustr'] })).rejects.toMatchObject({
      code: 'RECIPE_INVALID',
      message: `kernel.modules: kernel ${KERNEL} has no module lustr — did you mean lustre?`,
    })
  })

  test('bring the firmware they ask for, as far as the image has it', async () => {
    const found = await unpacked(await build(await FILES()))
    expect(below(found, 'lib/firmware')).toEqual(['lib/firmware/bnx2x/e2.fw'])
    expect(found.get('lib/firmware/bnx2x/e2.fw')).toBe('firmware')
  })

  test('a kernel with everything built in has none, and that is fine', async () => {
    const found = await unpacked(await build({ [`boot/config-${KERNEL}`]: '' }))
    expect(found.get(`lib/modules/${KERNEL}/modules.dep`)).toBe('')
  })
})

describe('the archive', () => {
  test('has our scripts, busybox under its names, and what the kernel opens first', async () => {
    const found = await unpacked(await build(await FILES()))
    expect(found.get('init')).toBe(await readFile(join(SCRIPTS, 'init'), 'latin1'))
    expect(found.get('lib/muster/attempt')).toBe(await readFile(join(SCRIPTS, 'attempt'), 'latin1'))
    expect(found.get('bin/sh')).toBe('-> busybox')
    expect(found.get('sbin')).toBe('-> bin')
    expect(found.get('usr/sbin')).toBe('-> ../bin')
    expect(found.get('dev/console')).toBe('char')
  })

  test('is the same bytes every time, and others when something changed', async () => {
    const first = await build(await FILES())
    expect((await build(await FILES())).equals(first)).toBe(true)
    expect((await build(await FILES(), { extraModules: ['snd'] })).equals(first)).toBe(false)
  })

  test.each([
    ['zstd where the kernel has it', 'CONFIG_RD_ZSTD=y', '28b52ffd'],
    ['gzip where it has not', '# CONFIG_RD_ZSTD is not set', '1f8b0800'],
  ])('is compressed with %s', async (_, config, magic) => {
    const archive = await build({ ...(await FILES()), [`boot/config-${KERNEL}`]: `CONFIG_RD_GZIP=y\n${config}\n` })
    expect(archive.toString('hex', 0, 4)).toBe(magic)
  })

  test('is compressed with gzip where nobody knows what the kernel has', async () => {
    const { [`boot/config-${KERNEL}`]: _, ...files } = await FILES()
    expect((await build(files)).toString('hex', 0, 4)).toBe('1f8b0800')
  })
})

describe('busybox', () => {
  test('of this machine has everything our scripts call', async () => {
    const { stdout } = await exec(busybox, ['--list'])
    const known = new Set(stdout.toString().split('\n'))
    expect(APPLETS.filter(name => !known.has(name))).toEqual([])
  })

  test.each([
    ['is linked with libraries', '/bin/ls', 'needs shared libraries: an initramfs has none'],
    ['is not there', '/nowhere/busybox', 'cannot be read'],
    ['is no program', '/etc/passwd', 'is not a program for amd64'],
  ])('that %s is refused', async (_, path, problem) => {
    await expect(build(await FILES(), { busybox: path })).rejects.toMatchObject({
      code: 'BUILD_NEEDS',
      message: `${path} ${problem}`,
    })
  })

  test('of another machine is refused', async () => {
    await expect(build(await FILES(), { arch: 'arm64' })).rejects.toMatchObject({
      message: `${busybox} is not a program for arm64`,
    })
  })
})

describe('the keys of a site', () => {
  test('come with the program that checks signatures, and with all it needs', async () => {
    const found = await unpacked(await build(await FILES(), { keys: [KEY] }))
    expect(found.get('etc/muster/keys/86464cb37d69336d')).toBe(
      'untrusted comment: key 86464cb37d69336d\nRWSGRkyzfWkzbQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n',
    )
    expect(found.get('verify/bin/signify')).toContain('/verify/programs/signify "$@"')
    expect(below(found, 'verify/lib')).toContain('verify/lib/libc.so.6')
  })

  test('where there are none, none of it is there', async () => {
    const found = await unpacked(await build(await FILES()))
    expect([...found.keys()].filter(path => /^(verify|etc\/muster)/.test(path))).toEqual([])
  })
})

test('the certificate by which servers are known is there as its digest', async () => {
  const found = await unpacked(await build(await FILES(), { authority: 'a'.repeat(64) }))
  expect(found.get('etc/muster/ca')).toBe(`${'a'.repeat(64)}\n`)
})

describe('what an initramfs depends on', () => {
  test('is the same until a script, busybox or a key changes', async () => {
    const scripts = join(dir, 'scripts')
    await cp(SCRIPTS, scripts, { recursive: true })
    const first = await initramfsInputs({ busybox, scripts: SCRIPTS, keys: [] })
    expect(first).toMatch(/^[0-9a-f]{64}$/)
    expect(await initramfsInputs({ busybox, scripts, keys: [] })).toBe(first)

    await writeFile(join(scripts, 'lib.sh'), '# changed\n')
    expect(await initramfsInputs({ busybox, scripts, keys: [] })).not.toBe(first)

    const other = join(dir, 'busybox')
    await writeFile(other, Buffer.concat([await readFile(busybox), Buffer.from('x')]))
    await chmod(other, 0o755)
    expect(await initramfsInputs({ busybox: other, scripts: SCRIPTS, keys: [] })).not.toBe(first)
    expect(await initramfsInputs({ busybox, scripts: SCRIPTS, keys: [KEY] })).not.toBe(first)
    expect(await initramfsInputs({ busybox, scripts: SCRIPTS, keys: [], authority: 'a'.repeat(64) })).not.toBe(first)
  })
})
