import { randomUUID } from 'node:crypto'
import { copyFile, mkdir, readFile, readdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { exec } from '../../src/lib/exec.ts'
import { MUSTER, type Ran, type RunningServer, makeSite, run, serve, terminal } from '../cli/testing.ts'
import { type Built, type Lab, errorOf, hintOf, makeLab, mountsBelow, processesWith, tarOf } from './testing.ts'

let lab: Lab
let built: Built
let newer: Built

beforeAll(async () => {
  lab = await makeLab()
  await symlink('usr/share', lab.path('root/share'))
  await exec('chown', ['1000:900', lab.path('root/home')])
  const recipe = 'from: { directory: ../../../root }\n'
  await lab.recipe('compute', recipe)
  built = await lab.build('compute')
  await lab.recipe('compute', `${recipe}steps: [{ run: echo newer >/etc/newer }]\n`)
  newer = await lab.build('compute')
})
afterAll(() => lab[Symbol.asyncDispose]())

const imported = async (here: Lab, words: readonly string[]): Promise<Built> => {
  const { stdout, stderr, status } = await here.muster(['image', 'import', ...words, '--json'])
  if (status !== 0) throw new Error(stderr)
  return { ...(JSON.parse(stdout) as Built), stages: {} }
}

/** Paths, types, modes, owners and contents of a directory. */
async function treeOf(dir: string): Promise<string[]> {
  const list = await exec('find', [dir, '-printf', '%P %y %m %U:%G %l\\n'])
  const sums = await exec('sh', ['-c', 'cd "$1"; find . -type f -exec sha256sum {} +', 'sh', dir])
  return `${list.stdout.toString('utf8')}${sums.stdout.toString('utf8')}`.split('\n').sort()
}

async function unpacked(one: Built): Promise<string[]> {
  const dir = lab.path(`tree-${randomUUID()}`)
  await exec('unsquashfs', ['-quiet', '-no-progress', '-dest', dir, lab.artefact(one, 'squashfs')])
  return treeOf(dir)
}

describe('an exported directory', () => {
  it('holds plain files with their checksums', async () => {
    const ran = await lab.muster(['image', 'export', 'compute', 'boot/compute'])
    expect(ran.stdout).toBe(`compute ${newer.digest.slice(0, 19)} written to boot/compute\n`)
    const dir = lab.path('boot/compute')
    expect((await readdir(dir)).join(' ')).toBe(
      'SHA256SUMS build.log files.jsonl.zst lock.json manifest.json packages.json ' +
        'root.cpio.zst root.squashfs sbom.spdx.json',
    )
    await exec('sha256sum', ['--check', '--strict', '--quiet', 'SHA256SUMS'], { cwd: dir })
    expect(await readFile(join(dir, 'root.squashfs'))).toEqual(await readFile(lab.artefact(newer, 'squashfs')))
  })

  it('is not written over anything', async () => {
    const ran = await lab.muster(['image', 'export', 'compute', 'boot/compute'])
    expect(ran.status).toBe(1)
    expect(errorOf(ran)).toBe(`${lab.path('boot/compute')} is not empty`)
    expect(await readdir(lab.path('boot'))).toEqual(['compute'])
  })

  it('is imported elsewhere as the same image', async () => {
    const other = lab.elsewhere('imported')
    expect((await imported(other, ['compute', 'boot/compute'])).digest).toBe(newer.digest)
    expect(await other.images()).toEqual([`compute@${newer.digest}`])
    expect((await other.muster(['image', 'verify'])).status).toBe(0)
  })

  it('is not imported under a name that is not its own without a word', async () => {
    const other = lab.elsewhere('renamed')
    const ran = await other.muster(['image', 'import', 'login', 'boot/compute', '--json'])
    // Refused, or taken under that name; but not taken under another.
    const names = (await other.images()).map(image => image.split('@')[0])
    expect(names).toEqual(ran.status === 0 ? ['login'] : [])
  })

  it('with a byte that was changed on the way is refused', async () => {
    await exec('cp', ['-r', lab.path('boot/compute'), lab.path('boot/damaged')])
    await writeFile(lab.path('boot/damaged/root.squashfs'), 'something else')
    const other = lab.elsewhere('damaged')
    const ran = await other.muster(['image', 'import', 'compute', 'boot/damaged'])
    expect(ran.status).toBe(1)
    expect(errorOf(ran)).toMatch(/^root\.squashfs is [0-9a-f]{64}, its manifest says [0-9a-f]{64}$/)
    expect(hintOf(ran)).toBe('it was damaged on the way: copy it again')
    expect(await other.images()).toEqual([])
  })
})

describe('an exported tar', () => {
  it('holds the root, for tar and for muster', async () => {
    expect((await lab.muster(['image', 'export', 'compute', 'compute.tar', '--format', 'tar'])).status).toBe(0)
    await mkdir(lab.path('from-tar'))
    await exec('tar', ['-x', '--numeric-owner', '-f', lab.path('compute.tar'), '-C', lab.path('from-tar')])
    expect(await treeOf(lab.path('from-tar'))).toEqual(await unpacked(newer))
  })

  it('is not written over anything', async () => {
    await writeFile(lab.path('mine.tar'), 'mine')
    const ran = await lab.muster(['image', 'export', 'compute', 'mine.tar', '--format', 'tar'])
    expect(ran.status).toBe(1)
    expect(errorOf(ran)).toContain(lab.path('mine.tar'))
    expect(await readFile(lab.path('mine.tar'), 'utf8')).toBe('mine')
  })
})

describe('an exported container image', () => {
  it('is one for umoci and skopeo, and runs', async () => {
    expect((await lab.muster(['image', 'export', 'compute', 'compute.oci', '--format', 'oci'])).status).toBe(0)
    const layout = lab.path('compute.oci')
    const { stdout } = await exec('skopeo', ['inspect', `oci:${layout}:latest`])
    expect(JSON.parse(stdout.toString('utf8'))).toMatchObject({
      Architecture: newer.manifest.arch,
      Labels: { 'org.opencontainers.image.title': 'compute', 'muster.image.digest': newer.digest },
    })
    await exec('umoci', ['raw', 'unpack', '--image', `${layout}:latest`, lab.path('from-oci')])
    expect(await treeOf(lab.path('from-oci'))).toEqual(await unpacked(newer))
    const said = await exec('chroot', [lab.path('from-oci'), '/bin/cat', '/etc/newer'])
    expect(said.stdout.toString('utf8')).toBe('newer\n')
  })
})

describe('muster image import', () => {
  it('of a tree, a tar and a container image gives images to build on', async () => {
    await tarOf(lab.root, lab.path('root.tar'))
    const trees: string[][] = []
    for (const [name, flag, source] of [
      ['by-tree', '--tree', 'root'],
      ['by-tar', '--tar', 'root.tar'],
      ['by-oci', '--oci', 'oci:compute.oci:latest'],
    ] as const) {
      const one = await imported(lab, [name, flag, source])
      expect((await imported(lab, [name, flag, source])).digest).toBe(one.digest)
      expect(one.manifest).toMatchObject({ name, os: { id: 'tiny' } })
      trees.push((await unpacked(one)).filter(line => !/image-release|etc\/newer/.test(line)))
    }
    expect(trees[1]).toEqual(trees[0])
    expect(trees[2]).toEqual(trees[0])
    await lab.recipe('upon', 'from: { image: by-tar }\noutputs: [squashfs]\nsteps: [{ run: touch /etc/upon }]\n')
    const list = await lab.list(await lab.build('upon'))
    expect(list['/etc/upon']).toBe('-rw-r--r-- 0/0')
    expect(list['/home']).toBe('drwxr-xr-x 1000/900')
  })

  it('of a squashfs with kernel and initramfs keeps them byte for byte', async () => {
    await copyFile(lab.artefact(built, 'squashfs'), lab.path('live.squashfs'))
    await writeFile(lab.path('vmlinuz'), 'a kernel')
    await writeFile(lab.path('initrd.img'), 'an initramfs')
    const files = ['--squashfs', 'live.squashfs', '--kernel', 'vmlinuz', '--initrd', 'initrd.img']
    const rescue = await imported(lab, ['rescue', ...files])
    for (const [type, file] of [
      ['squashfs', 'live.squashfs'],
      ['kernel', 'vmlinuz'],
      ['initrd', 'initrd.img'],
    ] as const)
      expect((await readFile(lab.artefact(rescue, type))).equals(await readFile(lab.path(file)))).toBe(true)
    expect((await lab.muster(['image', 'show', 'rescue', '--path', 'initrd'])).stdout).toBe(
      `${lab.artefact(rescue, 'initrd')}\n`,
    )
  })

  it.each([
    [['rescue'], 2, /^say once what is imported/],
    [['rescue', '--tree', 'root', '--tar', 'root.tar'], 2, /^say once what is imported/],
    [['rescue', '--squashfs', 'vmlinuz'], 1, /vmlinuz is damaged/],
    [['rescue', '--squashfs', 'nowhere'], 1, /nowhere cannot be read$/],
    [['rescue', '--tar', 'vmlinuz'], 1, /./],
    [['rescue', 'root'], 1, /^root holds no manifest\.json$/],
    [['../evil', '--tree', 'root'], 2, /name/],
    [['UPPER', '--tree', 'root'], 2, /name/],
  ])('%j is refused', async (words, status, message) => {
    const before = await lab.images()
    const ran = await lab.muster(['image', 'import', ...words])
    expect(ran.status).toBe(status)
    expect(errorOf(ran)).toMatch(message)
    expect(errorOf(ran)).not.toMatch(/^\[|expected|invalid_/)
    expect(await lab.images()).toEqual(before)
  })
})

const shell = (...words: string[]): Promise<Ran> => lab.muster(['image', 'shell', 'compute', '--', ...words])

describe('muster image shell', () => {
  it('runs a command in the image and ends as it ends', async () => {
    expect(await shell('cat', '/etc/newer')).toMatchObject({ status: 0, stdout: 'newer\n' })
    expect(await shell('sh', '-c', 'exit 7')).toMatchObject({ status: 7 })
  })

  it('works on a copy, without the network and the files of this machine', async () => {
    const ran = await shell('sh', '-c', `echo changed >/etc/newer; ls ${lab.dir}; grep -c : /proc/net/dev; true`)
    expect(ran.stdout).toBe('1\n')
    expect((await shell('cat', '/etc/newer')).stdout).toBe('newer\n')
    expect((await lab.muster(['image', 'verify', 'compute'])).status).toBe(0)
    expect(await readdir(lab.path('data/images/work'))).toEqual([])
    expect(await mountsBelow(lab.dir)).toEqual([])
    expect(await processesWith(lab.dir)).toEqual([])
  })
})

describe('muster image shell at a terminal', () => {
  it('is a shell in the image, until it ends', async () => {
    await using program = terminal(`${MUSTER} image shell compute --data ${lab.data}`)
    await program.says('compute# ')
    program.type('echo "it is $(cat /etc/newer)"\r')
    await program.says('it is newer')
    program.type('exit 3\r')
    expect(await program.ended).toBe(3)
    expect(await readdir(lab.path('data/images/work'))).toEqual([])
  })
})

/** Another machine: its own data directory. */
const remote = (): Lab => lab.elsewhere('remote')

describe('a server', () => {
  let server: RunningServer
  const token = async (role: string): Promise<string> => {
    const name = `${role}-${randomUUID()}`
    const made = await run(MUSTER, ['token', 'create', name, '--role', role, '--json'], { env: server.env })
    return (JSON.parse(made.stdout) as { token: string }).token
  }
  const push = async (reference: string, role: string) =>
    lab.muster(['image', 'push', reference, server.url, '--json'], { env: { MUSTER_TOKEN: await token(role) } })

  beforeAll(async () => {
    const site = await makeSite(lab.path('served'))
    server = await serve(site, lab.path('server'))
  })
  afterAll(() => server[Symbol.asyncDispose]())

  it('takes an image from who may send one, and from nobody else', async () => {
    const refused = await push('compute', 'viewer')
    expect(refused.status).toBe(4)
    const nobody = await lab.muster(['image', 'push', 'compute', server.url])
    expect([nobody.status, hintOf(nobody)]).toEqual([
      4,
      'give a token with MUSTER_TOKEN, or use the unix socket as root',
    ])
    expect(await lab.elsewhere('server').images()).toEqual([])
    const sent = await push(`compute@${built.digest}`, 'operator')
    expect(JSON.parse(sent.stdout)).toMatchObject({ name: 'compute', digest: built.digest })
    expect(await lab.elsewhere('server').images()).toEqual([`compute@${built.digest}`])
  })

  it('gets only what it does not have', async () => {
    const { blobs } = JSON.parse((await push('compute', 'operator')).stdout) as { blobs: number }
    const had = new Set(built.manifest.artefacts.map(one => one.sha256))
    expect(blobs).toBe(newer.manifest.artefacts.filter(one => !had.has(one.sha256)).length)
    const again = await lab.muster(['image', 'push', 'compute', server.socket])
    expect(again.stdout).toBe(`compute ${newer.digest.slice(0, 19)}  was there already\n`)
  })

  it('gives it to who may see it; only what is not there', async () => {
    const env = { MUSTER_TOKEN: await token('viewer') }
    const pull = (reference: string) => remote().muster(['image', 'pull', reference, server.url, '--json'], { env })
    const first = JSON.parse((await pull(`compute@${built.digest}`)).stdout) as { blobs: number; digest: string }
    expect(first).toMatchObject({ digest: built.digest, blobs: built.manifest.artefacts.length })
    const second = JSON.parse((await pull('compute')).stdout) as { blobs: number; digest: string }
    expect(second.digest).toBe(newer.digest)
    expect(second.blobs).toBeLessThan(newer.manifest.artefacts.length)
    expect((await remote().images()).toSorted()).toEqual([`compute@${built.digest}`, `compute@${newer.digest}`].sort())
    expect((await remote().muster(['image', 'verify'])).status).toBe(0)
    const unknown = await pull('nobody')
    expect([unknown.status, errorOf(unknown)]).toEqual([1, expect.stringMatching(/nobody/)])
  })

  it('that is not there is an error', async () => {
    const ran = await lab.muster(['image', 'push', 'compute', 'http://127.0.0.1:1'])
    expect(ran.status).toBe(3)
  })
})
