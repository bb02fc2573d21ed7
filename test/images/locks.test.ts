import { createHash } from 'node:crypto'
import { copyFile, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { DEAD, type Mirror, startMirror } from './mirror.ts'
import { type SigningKey, filePackage, listPackages, rpmRepository, signingKey } from './rpm.ts'
import { type Lab, errorOf, hintOf, makeLab, tarOf } from './testing.ts'

interface Lock {
  readonly schema: string
  readonly time: string
  readonly packages: {
    readonly request: string
    readonly repositories: Readonly<Record<string, { readonly urls: readonly string[] }>>
    readonly packages: readonly { readonly name: string; readonly version: string; readonly sha256: string }[]
  }
}

let lab: Lab
let mirror: Mirror
/** The packages lie here, two versions of `tool`, of which the mirror at first has the older one only. */
let rpms: string
let newer: string
let number = 0

beforeAll(async () => {
  lab = await makeLab()
  rpms = await rpmRepository(lab.path('rpms'), [filePackage('tool', '1'), filePackage('extra', '1')])
  newer = await rpmRepository(lab.path('newer'), [filePackage('tool', '2')])
  mirror = await startMirror(rpms)
})
afterAll(async () => {
  await mirror[Symbol.asyncDispose]()
  await lab[Symbol.asyncDispose]()
})
beforeEach(async () => {
  mirror.asked.length = 0
  mirror.instead.clear()
  await rm(toolFile(2), { force: true })
  await copyFile(join(lab.path('rpms.kept')), toolFile(1)).catch(() => {})
  await listPackages(rpms)
})

const ARCH = process.arch === 'arm64' ? 'aarch64' : 'x86_64'
const toolFile = (version: number): string => join(rpms, `tool-${version}-1.${ARCH}.rpm`)

/** The mirror gets the newer one, and loses the older one where it is said. */
async function moveMirror({ keep = true } = {}): Promise<void> {
  await copyFile(join(newer, `tool-2-1.${ARCH}.rpm`), toolFile(2))
  if (!keep) await rename(toolFile(1), lab.path('rpms.kept'))
  await listPackages(rpms)
}

const recipe = (packages = 'tool', url = mirror.url): string =>
  `from: { dnf: 9 }\nrepositories: { tiny: { url: "${url}", trusted: true } }\n` +
  `packages: [${packages}]\noutputs: [squashfs]\n`

const sha256Of = (content: Buffer): string => createHash('sha256').update(content).digest('hex')
const lockFile = (name: string): string => lab.path('site/images', name, 'lock.json')
const lockOf = async (name: string): Promise<Lock> => JSON.parse(await readFile(lockFile(name), 'utf8')) as Lock
const versions = async (name: string): Promise<Record<string, string>> =>
  Object.fromEntries((await lockOf(name)).packages.packages.map(one => [one.name, one.version]))

/** A data directory in which nothing was fetched yet. */
const fresh = (): Lab => lab.elsewhere(`data-${number++}`)

describe('the lock', () => {
  it('is written with the first build: exact versions and digests, a line each', async () => {
    await lab.recipe('first', recipe())
    const built = await lab.build('first')
    expect(built.lockFile).toBe(lockFile('first'))
    const text = await readFile(lockFile('first'), 'utf8')
    const sha256 = sha256Of(await readFile(toolFile(1)))
    const line = text
      .split('\n')
      .find(one => one.includes('"tool"'))
      ?.replace(/,$/, '')
      .trim()
    expect(JSON.parse(line ?? '')).toMatchObject({ name: 'tool', version: '1-1', sha256, repository: 'tiny' })
    expect(await lockOf('first')).toMatchObject({
      schema: 'muster.lock/1',
      packages: { repositories: { tiny: { urls: [mirror.url] } } },
    })
    expect(await versions('first')).toEqual({ tool: '1-1' })
  })

  it('is kept, byte for byte, and asks no mirror when all is there', async () => {
    const before = await readFile(lockFile('first'), 'utf8')
    await moveMirror()
    const again = await lab.build('first')
    expect(again).toMatchObject({ isUnchanged: true })
    expect(again.lockFile).toBeUndefined()
    expect(await readFile(lockFile('first'), 'utf8')).toBe(before)
    expect(mirror.asked).toEqual([])
  })

  it('decides in another data directory, although the mirror has moved on', async () => {
    await moveMirror()
    const other = fresh()
    const built = await other.build('first')
    expect(built.digest).toBe((await lab.build('first')).digest)
    expect(await other.cat(built, 'opt/tool')).toBe('1\n')
    expect(mirror.asked).toEqual([`/tool-1-1.${ARCH}.rpm`])
  })

  it('--update moves it, and says so', async () => {
    await moveMirror()
    const built = await lab.build('first', ['--update'])
    expect(built.lockFile).toBe(lockFile('first'))
    expect(await versions('first')).toEqual({ tool: '2-1' })
    expect(await lab.cat(built, 'opt/tool')).toBe('2\n')
  })

  it('--update moves nothing, its time neither, when the mirror has nothing new', async () => {
    await lab.recipe('same', recipe())
    await lab.build('same')
    const old = (await readFile(lockFile('same'), 'utf8')).replace(/"time": "[^"]*"/, '"time": "2020-02-02T02:02:02Z"')
    await writeFile(lockFile('same'), old)
    const built = await lab.build('same')
    expect(await lab.build('same', ['--update'])).toMatchObject({ digest: built.digest, isUnchanged: true, stages: {} })
    expect(await readFile(lockFile('same'), 'utf8')).toBe(old)
    await moveMirror()
    await lab.build('same', ['--update'])
    expect((await lockOf('same')).time).not.toBe('2020-02-02T02:02:02Z')
  })

  it('--update moves nothing when the archive it starts from is the same', async () => {
    await tarOf(lab.root, lab.path('same.tar'))
    await lab.recipe('from-same', 'from: { tar: ../../../same.tar }\noutputs: [squashfs]\n')
    await lab.build('from-same')
    const old = (await readFile(lockFile('from-same'), 'utf8')).replace(
      /"time": "[^"]*"/,
      '"time": "2020-02-02T02:02:02Z"',
    )
    await writeFile(lockFile('from-same'), old)
    const built = await lab.build('from-same')
    expect(await lab.build('from-same', ['--update'])).toMatchObject({ digest: built.digest, isUnchanged: true })
    expect(await readFile(lockFile('from-same'), 'utf8')).toBe(old)
  })

  it('stays with the versions it has when the recipe asks for one more package', async () => {
    await lab.recipe('more', recipe())
    await lab.build('more')
    await moveMirror()
    await lab.recipe('more', recipe('tool, extra'))
    const other = fresh()
    const built = await other.build('more')
    expect(await versions('more')).toEqual({ extra: '1-1', tool: '1-1' })
    expect(await other.cat(built, 'opt/tool')).toBe('1\n')
  })

  it('takes the version that a recipe names', async () => {
    await moveMirror()
    await lab.recipe('exact', recipe('tool=1'))
    await fresh().build('exact')
    expect(await versions('exact')).toMatchObject({ tool: '1-1' })
  })

  it('that is none of ours is refused, and left alone', async () => {
    await lab.recipe('broken', recipe(), { 'lock.json': '{"schema":"other/1"}' })
    const ran = await lab.fails('broken')
    expect(errorOf(ran)).toBe('images/broken/lock.json is no lock of ours')
    expect(hintOf(ran)).toBe('bring it back from git, or remove it: the next build writes a new one')
    expect(await readFile(lockFile('broken'), 'utf8')).toBe('{"schema":"other/1"}')
  })
})

describe('--locked', () => {
  it('fails where there is no lock, and writes none', async () => {
    await lab.recipe('frozen', recipe())
    const ran = await lab.fails('frozen', ['--locked'])
    expect(errorOf(ran)).toBe('images/frozen/lock.json does not say everything the recipe asks for')
    expect(hintOf(ran)).toBe('build once without --locked, and commit the lock')
    expect(await readdir(lab.path('site/images/frozen'))).toEqual(['image.yaml'])
    expect(mirror.asked).toEqual([])
  })

  it('builds what the lock says, and fails when the recipe asks for more', async () => {
    const built = await lab.build('frozen')
    expect((await fresh().build('frozen', ['--locked'])).digest).toBe(built.digest)
    await lab.recipe('frozen', recipe('tool, extra'))
    expect((await lab.fails('frozen', ['--locked'])).status).toBe(1)
  })

  it('fails when an archive is not the one that was locked', async () => {
    const file = await tarOf(lab.root, lab.path('root.tar'))
    await lab.recipe('archive', 'from: { tar: ../../../root.tar }\noutputs: [squashfs]\n')
    const built = await lab.build('archive')
    await tarOf(lab.root, file, '--exclude=./bin/yes')
    expect(errorOf(await lab.fails('archive', ['--locked']))).toContain('does not say everything')
    const now = await lab.build('archive')
    expect(now).toMatchObject({ previous: built.digest, lockFile: lockFile('archive') })
  })

  it('and --update say opposite things', async () => {
    const ran = await lab.fails('frozen', ['--locked', '--update'])
    expect(ran).toMatchObject({ status: 2 })
    expect(errorOf(ran)).toBe('--update and --locked say opposite things')
  })
})

describe('a package that was locked', () => {
  it.each([
    ['http', () => mirror.url],
    ['a directory', () => `file://${rpms}`],
  ])('and is no longer to be had by %s is an error that says what to do', async (how, url) => {
    const name = `gone-by-${how === 'http' ? 'http' : 'file'}`
    await lab.recipe(name, recipe('tool', url()))
    await lab.build(name)
    await moveMirror({ keep: false })
    const other = fresh()
    const ran = await other.fails(name, ['--locked'])
    expect(errorOf(ran)).toBe('no longer to be had: tool 1-1')
    expect(hintOf(ran)).toBe('take the versions of today with --update, or name a mirror that keeps old ones')
    expect(await other.images()).toEqual([])
    // What the hint says works.
    expect(await other.cat(await other.build(name, ['--update']), 'opt/tool')).toBe('2\n')
  })

  it('comes from the second address when the first does not answer', async () => {
    await lab.recipe('second', recipe())
    const built = await lab.build('second')
    const text = await readFile(lockFile('second'), 'utf8')
    await writeFile(lockFile('second'), text.replace(`["${mirror.url}"]`, `["${DEAD}","${mirror.url}"]`))
    const other = await fresh().build('second', ['--locked'])
    expect(other.manifest.tree).toBe(built.manifest.tree)
  })

  it('comes from the second address when the first no longer has it', async () => {
    await using old = await startMirror(lab.path('rpms'))
    old.instead.set(`/tool-1-1.${ARCH}.rpm`, 404)
    await lab.recipe('elder', recipe())
    const built = await lab.build('elder')
    const text = await readFile(lockFile('elder'), 'utf8')
    await writeFile(lockFile('elder'), text.replace(`["${mirror.url}"]`, `["${old.url}","${mirror.url}"]`))
    expect((await fresh().build('elder', ['--locked'])).manifest.tree).toBe(built.manifest.tree)
    expect(mirror.asked).toContain(`/tool-1-1.${ARCH}.rpm`)
  })

  it('and was altered is refused by its digest, and not kept', async () => {
    await lab.recipe('altered', recipe())
    await lab.build('altered')
    const bytes = await readFile(toolFile(1))
    const wrong = Buffer.from(bytes)
    wrong[bytes.length - 1] = (wrong.at(-1) ?? 0) ^ 1
    mirror.instead.set(`/tool-1-1.${ARCH}.rpm`, wrong)
    const other = fresh()
    const ran = await other.fails('altered')
    expect(errorOf(ran)).toBe('altered: cannot fetch tool 1-1')
    expect(ran.stderr).toContain(`tool 1-1: has digest ${sha256Of(wrong)}, expected ${sha256Of(bytes)}\n`)
    expect(await other.images()).toEqual([])
    mirror.instead.clear()
    expect(await other.cat(await other.build('altered'), 'opt/tool')).toBe('1\n')
  })
})

describe('a mirror', () => {
  it('that does not answer is an error that says for which image', async () => {
    await lab.recipe('unanswered', recipe('tool', DEAD))
    expect(errorOf(await lab.fails('unanswered'))).toBe('unanswered: a package repository cannot be read')
  })
})

describe('of images on each other', () => {
  it('--update moves the lock of those that are named only', async () => {
    await lab.recipe('lower', recipe())
    await lab.recipe('upper', 'from: { image: lower }\npackages: [extra]\noutputs: [squashfs]\n')
    await lab.build('upper')
    const before = await readFile(lockFile('lower'), 'utf8')
    await moveMirror()
    const built = await lab.build('upper', ['--update'])
    expect(await readFile(lockFile('lower'), 'utf8')).toBe(before)
    expect(await lab.cat(built, 'opt/tool')).toBe('1\n')
  })
})

const from = (repositories: string, packages: string): string =>
  `from: { dnf: 9 }\nrepositories: { ${repositories} }\npackages: [${packages}]\noutputs: [squashfs]\n`
const signed = (dir: string, key: string): string => `{ url: "file://${lab.path(dir)}", key: ${key} }`

describe('a repository that is signed', () => {
  let ada: SigningKey
  let bob: SigningKey
  beforeAll(async () => {
    ada = await signingKey(lab.path('ada'), 'ada')
    bob = await signingKey(lab.path('bob'), 'bob')
    await rpmRepository(lab.path('signed'), [filePackage('tool')], ada)
    await rpmRepository(lab.path('others'), [filePackage('other')], bob)
    await rpmRepository(lab.path('unsigned'), [filePackage('tool')])
  })
  afterAll(async () => {
    await ada[Symbol.asyncDispose]()
    await bob[Symbol.asyncDispose]()
  })
  it('is taken with its key', async () => {
    await lab.recipe('signed', from(`tiny: ${signed('signed', 'ada.asc')}`, 'tool'), { 'ada.asc': ada.text })
    expect(await lab.cat(await lab.build('signed'), 'opt/tool')).toBe('1\n')
  })

  it.each([
    ['with the key of somebody else', 'signed', 'bob.asc', /wrong key/],
    ['with a key that is none', 'signed', 'none.asc', /not correct for this package/],
    ['when its packages are not signed', 'unsigned', 'ada.asc', /is not signed$/m],
  ])('is refused %s', async (_, dir, key, said) => {
    const name = `refused-${dir}-${key.slice(0, -4)}`
    const keys = { 'ada.asc': ada.text, 'bob.asc': bob.text, 'none.asc': 'none\n' }
    await lab.recipe(name, from(`tiny: ${signed(dir, key)}`, 'tool'), keys)
    const ran = await lab.fails(name)
    expect(errorOf(ran)).toBe(`${name}: repository tiny is not signed by the key ${lab.path('site/images', name, key)}`)
    expect(hintOf(ran)).toBe(
      'put the key that signs it in that place, or take it as it is with trusted: true in the recipe',
    )
    expect(ran.stderr).toMatch(said)
    expect(await lab.images()).not.toContainEqual(expect.stringContaining(name))
  })

  it('is held against its own key, also beside one that is trusted without', async () => {
    const both = `tiny: { url: "file://${lab.path('unsigned')}", trusted: true }, others: ${signed('others', 'ada.asc')}`
    await lab.recipe('mixed', from(both, 'tool, other'), { 'ada.asc': ada.text })
    expect(errorOf(await lab.fails('mixed'))).toBe(
      `mixed: repository others is not signed by the key ${lab.path('site/images/mixed/ada.asc')}`,
    )
    await lab.recipe('mixed', from(both.replace('ada.asc', 'bob.asc'), 'tool, other'), { 'bob.asc': bob.text })
    expect(await lab.cat(await lab.build('mixed'), 'opt/other')).toBe('1\n')
  })

  it('with a key that is not there is refused', async () => {
    await lab.recipe('no-key', from(`tiny: ${signed('signed', 'nowhere.asc')}`, 'tool'))
    expect(errorOf(await lab.fails('no-key'))).toBe(
      'images/no-key/image.yaml: repositories.tiny.key: there is no nowhere.asc beside the recipe',
    )
  })

  it('without a key is only taken when the recipe says that it is trusted', async () => {
    await lab.recipe('keyless', from(`tiny: { url: "file://${lab.path('signed')}" }`, 'tool'))
    const ran = await lab.fails('keyless')
    expect(errorOf(ran)).toBe('images/keyless/image.yaml: repositories.tiny: has no key')
    expect(hintOf(ran)).toBe('give the key that signs it with key:, or say trusted: true')
  })
})

const importRoot = async (file: string): Promise<string> => {
  await writeFile(lab.path('root/etc/version'), file)
  const { stdout } = await lab.muster(['image', 'import', 'rescue', '--tree', lab.root, '--json'])
  return (JSON.parse(stdout) as { digest: string }).digest
}
const version = async (flags: readonly string[] = []): Promise<string> =>
  lab.cat(await lab.build('upon', flags), 'etc/version')

describe('an imported image that another one is built on', () => {
  it('stays the one that was locked, until --update takes the newest', async () => {
    await importRoot('one')
    await lab.recipe('upon', 'from: { image: rescue }\noutputs: [squashfs]\n')
    expect(await version()).toBe('one')
    await importRoot('two')
    await lab.recipe('upon', 'from: { image: rescue }\noutputs: [squashfs]\nsteps: [{ run: touch /etc/step }]\n')
    expect(await version()).toBe('one')
    expect(await version(['--update'])).toBe('two')
  })

  it('and is no longer here is an error that says what to do', async () => {
    const digest = await importRoot('three')
    expect(await version(['--update'])).toBe('three')
    await lab.muster(['image', 'rm', `rescue@${digest}`, '--yes'])
    await lab.muster(['image', 'gc', '--grace', '0s', '--unused', '0s'])
    await lab.recipe('upon', 'from: { image: rescue }\noutputs: [squashfs]\nsteps: [{ run: touch /etc/other }]\n')
    const ran = await lab.fails('upon')
    expect(errorOf(ran)).toContain('rescue')
    expect(hintOf(ran)).toContain('--update')
  })
})
