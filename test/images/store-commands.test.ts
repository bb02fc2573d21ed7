import { open, readFile, readdir } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MUSTER, run } from '../cli/testing.ts'
import { type Built, type Lab, errorOf, hintOf, makeLab } from './testing.ts'

const recipe = (step: string): string =>
  `from: { directory: ../../../root }\noutputs: [squashfs]\nsteps: [{ run: "${step}" }]\n`

let lab: Lab
let first: Built
let second: Built
let other: Built

beforeAll(async () => {
  lab = await makeLab()
  await lab.recipe('compute', recipe('echo one >/etc/one; echo gone >/etc/gone'))
  first = await lab.build('compute')
  await lab.recipe('compute', recipe('echo two >/etc/one; echo new >/etc/new; chmod 700 /home'))
  second = await lab.build('compute')
  await lab.recipe('login', recipe('echo login'))
  other = await lab.build('login')
})
afterAll(() => lab[Symbol.asyncDispose]())

const short = (built: Built): string => built.digest.slice(0, 'sha256:'.length + 12)
const columns = (text: string): string[][] =>
  text
    .trimEnd()
    .split('\n')
    .map(line => line.trim().split(/ {2,}/))

describe('muster image ls', () => {
  it('lists the newest of each name', async () => {
    const [head, ...rows] = columns((await lab.muster(['image', 'ls'])).stdout)
    expect(head).toEqual(['NAME', 'DIGEST', 'BUILT', 'SIZE', 'ROOT', 'OS', 'KERNEL'])
    expect(rows.map(row => [row[0], row[1], row[5], row[6]])).toEqual([
      ['compute', short(second), 'tiny 1', '-'],
      ['login', short(other), 'tiny 1', '-'],
    ])
  })

  it('lists all of one name, newest first', async () => {
    const [, ...rows] = columns((await lab.muster(['image', 'ls', 'compute', '--all'])).stdout)
    expect(rows.map(row => row[1])).toEqual([short(second), short(first)])
  })

  it('says when there is none, and when nobody has that name', async () => {
    const empty = await lab.elsewhere('empty').muster(['image', 'ls'])
    expect(empty).toMatchObject({ status: 0, stdout: 'no images yet: muster image build NAME\n' })
    const ran = await lab.muster(['image', 'ls', 'compite'])
    expect(ran.status).toBe(1)
    expect(errorOf(ran)).toMatch(/^no image is named compite/)
  })
})

describe('commands that only read', () => {
  it.each([
    ['ls compute', 'no image is named compute'],
    ['show compute', 'no image is named compute'],
    ['log compute', 'no image is named compute'],
    ['diff compute login', 'no image is named compute'],
    ['verify compute', 'no image is named compute'],
    ['rm compute --yes', 'no image is named compute'],
    ['export compute exported', 'no image is named compute'],
    ['shell compute', 'no image is named compute'],
    ['push compute', 'no image is named compute'],
  ])('make no data directory: %s', async (words, message) => {
    const ran = await lab.elsewhere('typo').muster(['image', ...words.split(' ')])
    expect([ran.status, errorOf(ran)]).toEqual([1, message])
    expect(await readdir(lab.dir)).not.toContain('typo')
  })

  it('make none to say that there are no images', async () => {
    const { status, stdout } = await lab.elsewhere('typo').muster(['image', 'ls'])
    expect([status, stdout]).toEqual([0, 'no images yet: muster image build NAME\n'])
    expect((await lab.elsewhere('typo').muster(['image', 'verify'])).status).toBe(0)
    expect(await readdir(lab.dir)).not.toContain('typo')
  })

  it('nor does completion', async () => {
    const { stdout } = await run(MUSTER, ['complete', '--', 'image', 'show', '--data', lab.data, ''])
    expect(stdout.split('\n')).toEqual(expect.arrayContaining(['compute', 'login']))
    expect(await run(MUSTER, ['complete', '--', 'image', 'show', '--data', lab.path('typo'), ''])).toMatchObject({
      stdout: '',
    })
    expect(await readdir(lab.dir)).not.toContain('typo')
  })
})

describe('muster image show', () => {
  it('gives the manifest as JSON, of the newest, of a digest, of the beginning of one', async () => {
    for (const [reference, built] of [
      ['compute', second],
      [`compute@${first.digest}`, first],
      [`compute@${short(first)}`, first],
      [first.digest, first],
      [short(other), other],
    ] as const) {
      const { stdout, stderr } = await lab.muster(['image', 'show', reference, '--json'])
      expect(stderr).toBe('')
      expect(JSON.parse(stdout)).toEqual({ digest: built.digest, ...built.manifest, signatures: [] })
    }
  })

  it('says which images share an artefact', async () => {
    const rows = columns((await lab.muster(['image', 'show', 'compute'])).stdout)
    const shared = Object.fromEntries(rows.map(row => [row[0], row[3]]))
    expect(shared).toMatchObject({ squashfs: '1', packages: '3' })
  })

  it('prints where an artefact lies', async () => {
    const ran = await lab.muster(['image', 'show', 'compute', '--path', 'squashfs'])
    expect(ran.stdout).toBe(`${lab.artefact(second, 'squashfs')}\n`)
    const none = await lab.muster(['image', 'show', 'compute', '--path', 'kernel'])
    expect(none).toMatchObject({ status: 2, stdout: '' })
    expect(errorOf(none)).toBe('compute has no kernel')
    expect(hintOf(none)).toBe('it has squashfs, files, packages, sbom, log, lock')
  })

  it('names what is largest', async () => {
    const { stdout } = await lab.muster(['image', 'show', 'compute', '--largest'])
    expect(stdout).toMatch(/^total [\d.]+ MB\n\nlargest directories\n +[\d.]+ MB {2}\/bin\n/)
  })
})

describe('muster image log', () => {
  it('prints that of the last build, also when it failed, and that of each image', async () => {
    await lab.recipe('failing', recipe('echo good'))
    const good = await lab.build('failing')
    await lab.recipe('failing', recipe('echo bad; exit 9'))
    await lab.fails('failing')
    const last = await lab.muster(['image', 'log', 'failing'])
    expect(last.stdout).toContain('+ echo bad\nbad\n+ exit 9\n')
    expect(last.stdout).not.toContain('+ echo good')
    expect((await lab.muster(['image', 'log', `failing@${good.digest}`])).stdout).toContain('+ echo good\ngood\n')
  })

  it('of what was never built is an error', async () => {
    expect(await lab.muster(['image', 'log', 'nobody'])).toMatchObject({ status: 1, stdout: '' })
  })
})

describe('muster image diff', () => {
  it('compares an image with the newest of its name', async () => {
    const { stdout, status } = await lab.muster(['image', 'diff', `compute@${first.digest}`])
    expect(status).toBe(0)
    const rows = columns(stdout).filter(([sign]) => /^[+−±]$/.test(sign ?? ''))
    expect(rows).toEqual([
      ['+', '/etc/new'],
      ['−', '/etc/gone'],
      ['±', '/etc/image-release', 'content'],
      ['±', '/etc/one', 'content'],
      ['±', '/home', 'mode'],
    ])
    expect(stdout).toContain('packages  the same\n')
    expect(stdout).toContain('files     1 added, 1 removed, 3 changed\n')
  })

  it('says by its exit status whether there is a difference, where it is asked', async () => {
    const different = await lab.muster(['image', 'diff', first.digest, second.digest, '--exit-code'])
    const same = await lab.muster(['image', 'diff', 'compute', 'compute', '--exit-code'])
    expect([different.status, same.status]).toEqual([1, 0])
  })

  it('gives the same as JSON', async () => {
    const { stdout } = await lab.muster(['image', 'diff', first.digest, second.digest, '--json'])
    expect(JSON.parse(stdout)).toMatchObject({
      before: first.digest,
      after: second.digest,
      packages: { added: [], removed: [] },
      files: { added: [{ path: 'etc/new' }], removed: [{ path: 'etc/gone' }] },
    })
  })
})

describe('muster image verify', () => {
  it('is content with what is whole', async () => {
    const ran = await lab.muster(['image', 'verify', 'login'])
    expect(ran).toMatchObject({ status: 0, stdout: '7 artefacts as they should be\n' })
  })

  it('finds a byte that is not as it was, and with --discard has it built again', async () => {
    const file = lab.artefact(other, 'squashfs')
    await flip(file, 5000)
    const ran = await lab.muster(['image', 'verify', 'login'])
    expect(ran.status).toBe(1)
    const sha256 = other.manifest.artefacts.find(one => one.type === 'squashfs')?.sha256
    expect(ran.stdout).toBe(`login@${short(other)}: squashfs ${sha256}: wrong digest\n1 of 7 artefacts damaged\n`)
    expect((await lab.muster(['image', 'verify', 'compute'])).status).toBe(0)
    expect((await lab.muster(['image', 'verify', 'login', '--discard'])).status).toBe(1)
    expect((await lab.muster(['image', 'verify', 'login'])).stdout).toContain(': missing\n')
    expect((await lab.build('login')).digest).toBe(other.digest)
    expect((await lab.muster(['image', 'verify'])).status).toBe(0)
  })
})

async function flip(path: string, at: number): Promise<void> {
  await using file = await open(path, 'r+')
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, at)
  await file.write(Buffer.from([(buffer[0] ?? 0) ^ 1]), 0, 1, at)
}

describe('completion', () => {
  it.each([
    [
      ['image', 'show', ''],
      ['compute', 'failing', 'login'],
    ],
    [['image', 'show', 'co'], ['compute']],
    [['image', 'diff', 'compute', 'l'], ['login']],
    [['image', 'build', 'l'], ['login']],
    [['image', 'ver'], ['verify\tRead every byte of one image, or of all, and compare with its digests']],
  ])('of %j', async (words, found) => {
    const [command = '', action = '', ...rest] = words
    const place = rest.length === 0 ? [] : ['--data', lab.data, '--site', lab.site]
    const { stdout } = await run(MUSTER, ['complete', '--', command, action, ...place, ...rest])
    expect(stdout.trimEnd().split('\n')).toEqual(found)
  })
})

describe('muster image rm', () => {
  it('asks, and without a terminal does nothing unless it is told', async () => {
    const ran = await lab.muster(['image', 'rm', `compute@${short(first)}`])
    expect(ran.status).toBe(1)
    expect(hintOf(ran)).toBe('not a terminal: say --yes to go on')
    expect(await lab.images()).toContain(`compute@${first.digest}`)
  })

  it('takes an image off the list, and gc its bytes; the others stay whole', async () => {
    const gone = lab.artefact(first, 'squashfs')
    const removed = await lab.muster(['image', 'rm', `compute@${short(first)}`, '--yes'])
    expect(removed.stdout).toBe(`compute ${short(first)} removed; muster image gc gives its space back\n`)
    expect(await lab.images()).not.toContain(`compute@${first.digest}`)
    expect((await readFile(gone)).length).toBeGreaterThan(0)

    expect((await lab.muster(['image', 'gc', '--dry-run', '--grace', '0s'])).stdout).toMatch(
      /^[1-9]\d* artefacts would/,
    )
    expect((await lab.muster(['image', 'gc'])).stdout).toMatch(/^0 artefacts removed/)
    expect((await readFile(gone)).length).toBeGreaterThan(0)

    const collected = await lab.muster(['image', 'gc', '--grace', '0s', '--json'])
    const { removed: blobs } = JSON.parse(collected.stdout) as { removed: { sha256: string }[] }
    const own = first.manifest.artefacts.find(one => one.type === 'squashfs')?.sha256
    expect(blobs.map(one => one.sha256)).toContain(own)
    await expect(readFile(gone)).rejects.toThrow('ENOENT')
    expect((await lab.muster(['image', 'verify'])).status).toBe(0)
    expect((await lab.muster(['image', 'show', first.digest])).status).toBe(1)
  })

  it('leaves the caches to gc as well: what nobody built on for a while', async () => {
    const layers = (): Promise<string[]> => readdir(lab.path('data/images/layers'))
    expect(await layers()).not.toEqual([])
    expect((await lab.muster(['image', 'gc', '--unused', '0s'])).status).toBe(0)
    expect(await layers()).toEqual([])
    expect(await lab.build('login')).toMatchObject({ digest: other.digest, isUnchanged: true })
  })

  it('of what is not there is an error', async () => {
    expect(errorOf(await lab.muster(['image', 'rm', 'nobody', '--yes']))).toMatch(/^no image is named nobody/)
  })

  it('wants a time that is one', async () => {
    const ran = await lab.muster(['image', 'gc', '--grace', 'never'])
    expect(ran.status).toBe(2)
    expect(errorOf(ran)).toBe('--grace: never is not a time such as 30m, 1h or 14d')
  })
})
