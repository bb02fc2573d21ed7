import { readFile, writeFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { exec } from '../../src/lib/exec.ts'
import { writeImage } from './oci.ts'
import { TINY_RPMS, rpmRepository } from './rpm.ts'
import { tarBytes } from './tar.ts'
import { type Built, type Lab, makeLab, tarOf } from './testing.ts'

/** What every image here starts from, in all the ways there are. */
const BASES = {
  directory: 'directory: ../../../root',
  absolute: 'directory: ROOT',
  tar: 'tar: ../../../root.tar',
  gzip: 'tar: ../../../root.tar.gz',
  zstd: 'tar: ../../../root.tar.zst',
  xz: 'tar: ../../../root.tar.xz',
  bzip2: 'tar: ../../../root.tar.bz2',
  layout: 'oci: "oci:../../../layout:one"',
  archive: 'oci: "oci-archive:../../../oci.tar"',
  docker: 'oci: "docker-archive:../../../docker.tar"',
  imported: 'image: rescue',
  recipe: 'image: directory',
  own: 'tiny: { flavour: plain }',
} as const
type Kind = keyof typeof BASES

/** What a site's own base is given, kept in the root for the test to see. */
const OWN_BASE = `#!/bin/sh
set -eu
input=$(cat)
case $1 in
pin)
  echo 'this is no pin' >&2
  echo '{ "version": 3 }'
  ;;
unpack)
  tar -x -f root.tar -C "$MUSTER_ROOT"
  printf '%s\\n' "$input" >"$MUSTER_ROOT/etc/input"
  printf '%s %s %s\\n' "$MUSTER_IMAGE" "$MUSTER_ARCH" "$PWD" >"$MUSTER_ROOT/etc/told"
  echo seen >"$MUSTER_CACHE/kept"
  ;;
esac
`

let lab: Lab
let other: Lab
let first: ReadonlyMap<string, Built>
let second: ReadonlyMap<string, Built>
const images = { first: () => first, second: () => second }

beforeAll(async () => {
  lab = await makeLab({ 'bases/tiny': OWN_BASE })
  other = lab.elsewhere('other')
  await tarOf(lab.root, lab.path('root.tar'))
  for (const [program, suffix] of Object.entries({ gzip: 'gz', zstd: 'zst', xz: 'xz', bzip2: 'bz2' })) {
    const { stdout } = await exec(program, ['-c', '-1', lab.path('root.tar')])
    await writeFile(lab.path(`root.tar.${suffix}`), stdout)
  }
  await writeImage(lab.path('layout'), 'one', [await readFile(lab.path('root.tar'))])
  const skopeo = ['--insecure-policy', '--tmpdir', lab.dir, 'copy', '--quiet', `oci:${lab.path('layout')}:one`]
  await exec('skopeo', [...skopeo, `oci-archive:${lab.path('oci.tar')}`])
  await exec('skopeo', [...skopeo, `docker-archive:${lab.path('docker.tar')}:tiny:1`])
  await rpmRepository(lab.path('rpms'), TINY_RPMS)

  for (const [name, from] of Object.entries(BASES))
    await lab.recipe(name, `from: { ${from.replace('ROOT', lab.root)} }\noutputs: [squashfs]\n`)
  await exec('cp', [lab.path('root.tar'), lab.path('site/images/own/root.tar')])
  const repositories = `repositories: { tiny: { url: "file://${lab.path('rpms')}", trusted: true } }`
  await lab.recipe('dnf', `from: { dnf: 9 }\n${repositories}\npackages: [tiny-shell]\noutputs: [squashfs]\n`)

  for (const each of [lab, other]) await each.muster(['image', 'import', 'rescue', '--tree', lab.root])
  first = await buildAll(lab)
  second = await buildAll(other)
}, 120_000)
afterAll(() => lab[Symbol.asyncDispose]())

async function buildAll(here: Lab): Promise<ReadonlyMap<string, Built>> {
  const { status, stdout, stderr } = await here.muster(['image', 'build', '--json'], { timeout: 110_000 })
  expect(stderr).not.toContain('error:')
  expect(status).toBe(0)
  return new Map((JSON.parse(stdout) as Built[]).map(built => [built.name, built]))
}

const built = (name: string, from: 'first' | 'second' = 'first'): Built => {
  const found = images[from]().get(name)
  if (found === undefined) throw new Error(`${name} was not built`)
  return found
}

describe('every kind of base', () => {
  it.each([...Object.keys(BASES), 'dnf'])('%s: gives the same bytes in another data directory', name => {
    expect(built(name, 'second').digest).toBe(built(name).digest)
    expect(built(name, 'second').manifest).toEqual(built(name).manifest)
  })

  it.each(Object.keys(BASES) as Kind[])('%s: holds the root with its owners and modes', async name => {
    const list = await lab.list(built(name))
    expect(list['/bin/busybox']).toBe('-rwxr-xr-x 0/0')
    expect(list['/bin/sh']).toBe('lrwxrwxrwx 0/0 -> busybox')
    expect(list['/tmp']).toBe('drwxr-xr-x 0/0')
    expect(built(name).manifest.os).toEqual({ id: 'tiny', version: '1', name: 'Tiny 1' })
  })

  it('writes a lock beside each recipe, and only the first time', () => {
    for (const [name, one] of first) expect(one.lockFile).toBe(lab.path('site/images', name, 'lock.json'))
    for (const one of second.values()) expect(one.lockFile).toBeUndefined()
  })
})

describe('an image on another image of the site', () => {
  it('names it in its manifest', () => {
    expect(built('recipe').manifest.base).toEqual({
      name: 'directory',
      inputs: expect.stringMatching(/^sha256:[0-9a-f]{64}$/) as unknown,
    })
  })

  it('follows it', async () => {
    const text = 'from: { directory: ../../../root }\noutputs: [squashfs]\nsteps: [{ run: touch /etc/changed }]\n'
    await lab.recipe('directory', text)
    const now = await lab.build('recipe')
    expect(now.digest).not.toBe(built('recipe').digest)
    expect(Object.keys(await lab.list(now))).toContain('/etc/changed')
    await lab.recipe('directory', 'from: { directory: ../../../root }\noutputs: [squashfs]\n')
  })
})

describe('a base of the site’s own', () => {
  it('is asked for a pin, then unpacks it; it gets its settings and knows where it is', async () => {
    expect(JSON.parse(await lab.cat(built('own'), 'etc/input'))).toEqual({
      settings: { flavour: 'plain' },
      pin: { version: 3 },
      image: 'own',
      arch: built('own').manifest.arch,
    })
    expect(await lab.cat(built('own'), 'etc/told')).toBe(`own ${built('own').manifest.arch} /run/muster/recipe\n`)
  })
})

describe('dnf', () => {
  it('installs what is asked for and what that needs, and runs its scripts', async () => {
    expect(await lab.cat(built('dnf'), 'etc/tiny-shell.conf')).toBe('configured\n')
    const { stdout } = await lab.muster(['image', 'show', 'dnf', '--packages', '--json'])
    const names = (JSON.parse(stdout) as { name: string; version: string }[]).map(one => `${one.name} ${one.version}`)
    expect(names).toEqual(['tiny-release 1-1', 'tiny-shell 1-1'])
    expect(built('dnf').manifest.os).toEqual({ id: 'tinyrhel', version: '9', name: 'Tiny 9' })
  })
})

describe('a container layout with two tags', () => {
  it('gives each its own root', async () => {
    const layer = tarBytes([{ name: 'etc/os-release', content: 'ID=second\n' }])
    await writeImage(lab.path('layout'), 'two', [layer])
    for (const tag of ['one', 'two'])
      await lab.recipe(`tag-${tag}`, `from: { oci: "oci:../../../layout:${tag}" }\noutputs: [squashfs]\n`)
    const one = await lab.build('tag-one')
    // With the same time in its lock nothing but the tag tells them apart.
    await exec('cp', [lab.path('site/images/tag-one/lock.json'), lab.path('site/images/tag-two/lock.json')])
    const two = await lab.build('tag-two')
    expect([one.manifest.os?.id, two.manifest.os?.id]).toEqual(['tiny', 'second'])
  })
})

describe('a directory', () => {
  const recipe = 'from: { directory: ../../../changing }\noutputs: [squashfs]\n'

  it('is copied anew when a directory in it gets another mode', async () => {
    await exec('cp', ['--archive', lab.root, lab.path('changing')])
    await lab.recipe('changing', recipe)
    await lab.build('changing')
    await exec('chmod', ['0700', lab.path('changing/home')])
    expect((await lab.list(await lab.build('changing')))['/home']).toBe('drwx------ 0/0')
  })

  it('is copied anew when a file in it gets another owner', async () => {
    await exec('chown', ['1000:1000', lab.path('changing/etc/group')])
    expect((await lab.list(await lab.build('changing')))['/etc/group']).toBe('-rw-r--r-- 1000/1000')
  })
})
