/** Archives and container images that somebody else made, and not with good intentions. */
import { lstat, mkdir, readFile, readdir, writeFile } from 'node:fs/promises'
import { gzipSync } from 'node:zlib'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { exec } from '../../src/lib/exec.ts'
import type { Ran } from '../cli/testing.ts'
import { layerFile, writeImage } from './oci.ts'
import { type Member, tarBytes } from './tar.ts'
import { type Lab, errorOf, hintOf, makeLab, mountsBelow, writeTree } from './testing.ts'

let lab: Lab
/** A directory outside that nobody may touch. */
let canary: string
let names: string

beforeAll(async () => {
  lab = await makeLab()
  canary = lab.path('canary')
  await writeTree(canary, { secret: 'of this machine\n' })
  await lab.recipe('good', 'from: { directory: ../../../root }\noutputs: [squashfs]\n')
  await lab.build('good')
  names = await state()
})
afterAll(() => lab[Symbol.asyncDispose]())

const state = async (): Promise<string> => {
  const lists = await readdir(lab.path('data/images/names'))
  const texts = lists.map(name => readFile(lab.path('data/images/names', name), 'utf8'))
  return JSON.stringify([lists, ...(await Promise.all(texts))])
}

afterEach(nothingTouched)

async function nothingTouched(): Promise<void> {
  expect(await state()).toBe(names)
  expect(await readdir(canary)).toEqual(['secret'])
  expect(await readFile(`${canary}/secret`, 'utf8')).toBe('of this machine\n')
  expect((await lstat(`${canary}/secret`)).nlink).toBe(1)
  expect(await readdir(lab.path('data/images/work'))).toEqual([])
  expect(await readdir(lab.path('data/images/tmp'))).toEqual([])
  expect(await mountsBelow(lab.dir)).toEqual([])
}

/** {} stands for the canary. */
const ARCHIVES: readonly (readonly [what: string, members: readonly Member[], message: string])[] = [
  ['a name with ..', [{ name: '../canary/evil' }], '"../canary/evil": it leads out of the root'],
  [
    'a name with .. in the middle',
    [{ name: 'etc/../../canary/evil' }],
    '"etc/../../canary/evil": it leads out of the root',
  ],
  [
    'a file behind a link',
    [{ name: 'etc', type: 'symlink', link: '{}' }, { name: 'etc/evil' }],
    '"etc/evil": it would be written through the symbolic link "etc"',
  ],
  [
    'a file in place of a link',
    [
      { name: 'a', type: 'symlink', link: '{}/secret' },
      { name: 'a', content: 'evil' },
    ],
    '"a": an earlier member made it a symbolic link',
  ],
  [
    'a hard link to a file outside',
    [{ name: 'a', type: 'hardlink', link: '{}/secret' }],
    '"a": its target "{}/secret" is no file that stands earlier in the archive',
  ],
  [
    'a hard link with ..',
    [{ name: 'a', type: 'hardlink', link: '../canary/secret' }],
    '"a": its target "../canary/secret" leads out of the root',
  ],
  [
    'a hard link through a link',
    [
      { name: 'l', type: 'symlink', link: '{}' },
      { name: 'a', type: 'hardlink', link: 'l/secret' },
    ],
    '"a": its target is behind the symbolic link "l"',
  ],
  [
    'a device',
    [{ name: 'etc/disk', type: 'block', device: [8, 0] }],
    '"etc/disk": device nodes are allowed below dev/ only',
  ],
  ['a root that is a link', [{ name: './', type: 'symlink', link: '{}' }], '"./": only a directory can be the root'],
]

const withCanary = (members: readonly Member[]): Member[] =>
  members.map(one => ({ ...one, ...(one.link !== undefined && { link: one.link.replace('{}', canary) }) }))

describe('an archive with', () => {
  it.each(ARCHIVES)('%s is refused before anything is unpacked', async (_, members, message) => {
    await writeFile(lab.path('evil.tar'), tarBytes([{ name: 'first' }, ...withCanary(members)]))
    await lab.recipe('evil', 'from: { tar: ../../../evil.tar }\noutputs: [squashfs]\n')
    const ran = await lab.fails('evil')
    expect(ran.status).toBe(1)
    expect(errorOf(ran)).toBe(`../../../evil.tar: ${message.replace('{}', canary)}`)
    expect(hintOf(ran)).toBe('nothing was unpacked; make the archive anew')
  })

  it.each(ARCHIVES.slice(0, 5))('%s is refused as a layer of a container image', async (what, members, message) => {
    const layout = lab.path(`layout-${what.replaceAll(' ', '-')}`)
    await writeImage(layout, 'one', [tarBytes([{ name: 'first' }]), tarBytes(withCanary(members))])
    await lab.recipe('evil', `from: { oci: "oci:${layout}" }\noutputs: [squashfs]\n`)
    expect(errorOf(await lab.fails('evil'))).toBe(`oci:${layout}: ${message.replace('{}', canary)}`)
  })
})

describe('an archive', () => {
  const recipe = 'from: { tar: ../../../some.tar }\noutputs: [squashfs]\n'
  const fails = async (bytes: Uint8Array): Promise<string> => {
    await writeFile(lab.path('some.tar'), bytes)
    await lab.recipe('some', recipe)
    return errorOf(await lab.fails('some'))
  }

  it('that is cut off is refused', async () => {
    expect(await fails(tarBytes([{ name: 'a', content: 'x'.repeat(2000) }]).subarray(0, 1024))).toBe(
      '../../../some.tar: the archive is cut off after 1024 bytes',
    )
  })

  it('that is cut off inside its compression is refused', async () => {
    const bytes = gzipSync(tarBytes([{ name: 'a', content: String(Math.PI).repeat(5000) }]))
    expect(await fails(bytes.subarray(0, bytes.length - 20))).toMatch(
      /^\.\.\/\.\.\/\.\.\/some\.tar: .*(cut off|gzip cannot read it)/,
    )
  })

  it('that is none is refused', async () => {
    expect(await fails(Buffer.alloc(2048, 'no archive '))).toMatch(/^\.\.\/\.\.\/\.\.\/some\.tar: .*checksum/)
  })
})

describe('what an archive may bring', () => {
  afterEach(async () => {
    names = await state()
  })

  it('are devices below dev/, which are left out: a node has its own', async () => {
    const devices: Member[] = [
      { name: 'dev', type: 'directory' },
      { name: 'dev/null', type: 'char', device: [1, 3] },
      { name: 'run.fifo', type: 'fifo' },
      { name: 'abs', type: 'symlink', link: '/etc/passwd' },
      { name: '/absolute', content: 'inside' },
    ]
    await writeFile(lab.path('devices.tar'), tarBytes(devices))
    await lab.recipe('devices', 'from: { tar: ../../../devices.tar }\noutputs: [squashfs]\n')
    const list = await lab.list(await lab.build('devices'))
    expect(Object.keys(list).sort()).toEqual([
      '/',
      '/abs',
      '/absolute',
      '/dev',
      '/etc',
      '/etc/image-release',
      '/run.fifo',
    ])
    expect(list['/abs']).toBe('lrwxrwxrwx 0/0 -> /etc/passwd')
  })

  it('are devices below dev/ in the layers of a container image as well', async () => {
    const layer = tarBytes([
      { name: 'dev', type: 'directory' },
      { name: 'dev/null', type: 'char', device: [1, 3] },
      { name: 'etc/file' },
    ])
    await writeImage(lab.path('devices'), 'one', [layer])
    await lab.recipe('layers', `from: { oci: "oci:../../../devices" }\noutputs: [squashfs]\n`)
    expect(Object.keys(await lab.list(await lab.build('layers')))).toContain('/etc/file')
  })

  it('are layers that take away what those below brought', async () => {
    const below = tarBytes([{ name: 'etc/a' }, { name: 'etc/b' }, { name: 'opt/old/x' }])
    const above = tarBytes([{ name: 'etc/.wh.a' }, { name: 'opt/old/.wh..wh..opq' }, { name: 'opt/old/y' }])
    await writeImage(lab.path('whiteouts'), 'one', [below, above])
    await lab.recipe('whiteouts', 'from: { oci: "oci:../../../whiteouts" }\noutputs: [squashfs]\n')
    const paths = Object.keys(await lab.list(await lab.build('whiteouts')))
    expect(paths.filter(path => /^\/(etc|opt)\/./.test(path)).sort()).toEqual([
      '/etc/b',
      '/etc/image-release',
      '/opt/old',
      '/opt/old/y',
    ])
  })

  it('are layers that just end, as `umoci insert` writes them', async () => {
    await writeImage(lab.path('endless'), 'one', [tarBytes([{ name: 'etc/file' }], Buffer.alloc(0))])
    await lab.recipe('endless', 'from: { oci: "oci:../../../endless" }\noutputs: [squashfs]\n')
    expect(Object.keys(await lab.list(await lab.build('endless')))).toContain('/etc/file')
  })
})

async function failsFrom(reference: string): Promise<Ran> {
  await lab.recipe('broken', `from: { oci: "${reference}" }\noutputs: [squashfs]\n`)
  return lab.fails('broken')
}

describe('a container image', () => {
  const layer = tarBytes([{ name: 'etc/file', content: 'x'.repeat(1000) }])
  let number = 0
  const layout = async (): Promise<string> => {
    const dir = lab.path(`broken-${number++}`)
    await writeImage(dir, 'one', [layer])
    return dir
  }
  it('with a layer of another digest is refused', async () => {
    const dir = await layout()
    await writeFile(layerFile(dir, layer), gzipSync(tarBytes([{ name: 'etc/evil', content: 'x'.repeat(1000) }])))
    const ran = await failsFrom(`oci:${dir}`)
    expect(errorOf(ran)).toBe(`oci:${dir} is damaged or no container image`)
    expect(ran.stderr).toMatch(/digest|size/i)
  })

  it('without a layer is refused', async () => {
    const dir = await layout()
    await exec('rm', [layerFile(dir, layer)])
    expect(errorOf(await failsFrom(`oci:${dir}`))).toBe(`oci:${dir} is damaged or no container image`)
  })

  it('of a tag that is not there is refused', async () => {
    const dir = await layout()
    expect((await failsFrom(`oci:${dir}:two`)).stderr).toMatch(/no descriptor found for reference.*two/)
  })

  it('that removes the directory it is unpacked in is refused', async () => {
    const dir = lab.path('whiteout')
    await writeImage(dir, 'one', [tarBytes([{ name: '.wh...' }])])
    expect(errorOf(await failsFrom(`oci:${dir}`))).toBe(
      `oci:${dir}: ".wh...": it removes the directory it is in, or the one above`,
    )
  })

  it('whose archive writes through a link is refused', async () => {
    const members: Member[] = [
      { name: 'blobs', type: 'symlink', link: canary },
      { name: 'blobs/evil', content: 'evil' },
    ]
    await writeFile(lab.path('evil-oci.tar'), tarBytes(members))
    expect(errorOf(await failsFrom('oci-archive:../../../evil-oci.tar'))).toBe(
      'oci-archive:../../../evil-oci.tar: "blobs/evil": it would be written through the symbolic link "blobs"',
    )
  })

  it('whose layout has links that lead out shows nothing of this machine', async () => {
    const dir = await layout()
    await mkdir(lab.path('elsewhere'))
    await exec('sh', ['-c', 'mv "$1"/blobs "$2"/; ln -s "$2"/blobs "$1"/blobs', 'sh', dir, lab.path('elsewhere')])
    expect((await failsFrom(`oci:${dir}`)).status).toBe(1)
  })

  it('that is not there is an error that says where paths begin', async () => {
    const ran = await failsFrom('oci-archive:nowhere.tar')
    expect(errorOf(ran)).toBe('from: there is no archive nowhere.tar')
    expect(hintOf(ran)).toBe('paths are relative to the folder of the recipe')
  })

  it('of a registry that does not answer is an error that names it', async () => {
    const ran = await failsFrom('docker://127.0.0.1:1/tiny:1')
    expect(errorOf(ran)).toBe('broken: cannot read docker://127.0.0.1:1/tiny:1')
    expect(hintOf(ran)).toBe('check the address and the network, or name another mirror')
  })
})
