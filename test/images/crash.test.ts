import { once } from 'node:events'
import { watch } from 'node:fs'
import { readFile, readdir, stat } from 'node:fs/promises'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { CTRL_C, MUSTER, type Program, run, terminal } from '../cli/testing.ts'
import { type Gate, startGate } from './gate.ts'
import { TINY_RPMS, filePackage, rpmRepository } from './rpm.ts'
import { type Lab, type Built, errorOf, hintOf, makeLab, mountsBelow, processesWith } from './testing.ts'

let lab: Lab
let gate: Gate
let number = 0
/** An image of a name of its own, whose step asks at the gate. */
let name: string

beforeAll(async () => {
  lab = await makeLab()
  await lab.recipe('good', 'from: { directory: ../../../root }\noutputs: [squashfs]\n')
  await lab.build('good')
})
afterAll(() => lab[Symbol.asyncDispose]())

beforeEach(async () => {
  gate = await startGate()
  name = `held-${number++}`
  await lab.recipe(
    name,
    'from: { directory: ../../../root }\noutputs: [squashfs]\n' +
      `steps: [{ run: touch /etc/before }, { run: "wget -q -O /etc/answer ${gate.url}/${name}", network: true }]\n`,
  )
})
afterEach(() => gate[Symbol.asyncDispose]())
afterEach(nothingMounted)

async function nothingMounted(): Promise<void> {
  expect(await mountsBelow(lab.dir)).toEqual([])
}

const work = (): Promise<string[]> => readdir(lab.path('data/images/work'))
const build = (): Program => lab.start(['image', 'build', name])

/** Nothing of the build runs any more, which may take a moment after its own end. */
async function nobodyLeft(): Promise<void> {
  await expect.poll(() => processesWith(lab.dir), { timeout: 20_000 }).toEqual([])
}

/** The next build does what the last one could not, and leaves nothing lying about. */
async function buildsAgain(): Promise<void> {
  gate.openForAll()
  const built = await lab.build(name)
  expect(built.stages).toMatchObject({ 'from directory': 'cached', 'run touch /etc/before': 'cached' })
  expect(await lab.cat(built, 'etc/answer')).toBe('open\n')
  expect(await work()).toEqual([])
  expect(await lab.images()).toContain(`${name}@${built.digest}`)
}

describe('a build that is killed in a step', () => {
  it.each(['SIGKILL', 'SIGTERM', 'SIGHUP'] as const)('by %s leaves no process, no mount and no image', async signal => {
    await using program = build()
    const visitor = await gate.visitor()
    program.child.kill(signal)
    await program.ended
    await visitor.gone
    await nobodyLeft()
    expect(await mountsBelow(lab.dir)).toEqual([])
    expect((await lab.images()).filter(image => image.startsWith(name))).toEqual([])
    await buildsAgain()
  })
})

describe('Ctrl-C', () => {
  it('as a signal ends a build with status 130, and tidies up', async () => {
    await using program = build()
    const visitor = await gate.visitor()
    program.child.kill('SIGINT')
    expect(await program.ended).toBe(130)
    await visitor.gone
    await nobodyLeft()
    expect(program.stdout).toBe('')
    expect(program.stderr).not.toContain('error:')
    expect(await work()).toEqual([])
    await buildsAgain()
  })

  it('at a terminal does the same', async () => {
    const words = ['image', 'build', name, '--data', lab.data, '--site', lab.site]
    await using program = terminal(`${MUSTER} ${words.join(' ')}`)
    const visitor = await gate.visitor()
    program.type(CTRL_C)
    expect(await program.ended).toBe(130)
    await visitor.gone
    await nobodyLeft()
    expect(await work()).toEqual([])
    await buildsAgain()
  })
})

describe('a build that is killed while it', () => {
  it('packs leaves nothing that the next build and gc do not clear away', async () => {
    const big = 'head -c 30000000 /dev/urandom >/big'
    await lab.recipe('packed', `from: { directory: ../../../root }\noutputs: [cpio.gz]\nsteps: [{ run: ${big} }]\n`)
    const before = await lab.images()
    const watcher = watch(lab.path('data/images/tmp'))
    const begun = once(watcher, 'change')
    await using program = lab.start(['image', 'build', 'packed'])
    await begun
    program.child.kill('SIGKILL')
    await program.ended
    watcher.close()
    expect(await readdir(lab.path('data/images/tmp'))).not.toEqual([])
    expect(await lab.images()).toEqual(before)
    expect((await lab.build('packed')).stages).toMatchObject({ 'from directory': 'cached', pack: 'made' })
    expect(await work()).toEqual([])
    expect((await lab.muster(['image', 'gc', '--grace', '0s'])).status).toBe(0)
    expect(await readdir(lab.path('data/images/tmp'))).toEqual([])
    expect((await lab.muster(['image', 'verify', 'packed'])).status).toBe(0)
  })

  it('packs with a program of its own does not go on packing', async () => {
    const big = 'head -c 12000000 /dev/urandom >/big'
    await lab.recipe('erofs', `from: { directory: ../../../root }\noutputs: [erofs]\nsteps: [{ run: ${big} }]\n`)
    const watcher = watch(lab.path('data/images/tmp'))
    // Once the program writes it runs; before, there is only the empty file that it is given.
    const writes = new Promise<string>(resolve =>
      watcher.on('change', (event, file) => event === 'change' && resolve(String(file))),
    )
    await using program = lab.start(['image', 'build', 'erofs'])
    const file = await writes
    watcher.close()
    program.child.kill('SIGKILL')
    await program.ended
    const lock = JSON.parse(await readFile(lab.path('site/images/erofs/lock.json'), 'utf8')) as { time: string }
    const itsTime = `-T${Date.parse(lock.time) / 1000}`
    await expect.poll(() => processesWith(itsTime), { timeout: 60_000 }).toEqual([])
    expect((await stat(lab.path('data/images/tmp', file))).size).toBeLessThan(6_000_000)
  })

  it('fetches packages does not go on fetching', async () => {
    const packages = await rpmRepository(lab.path('rpms'), [...TINY_RPMS, filePackage('tool')])
    await lab.recipe('fetched', tinyRecipe(`file://${packages}`))
    await lab.build('fetched')
    await lab.recipe('fetched', tinyRecipe(gate.url))
    const other = lab.elsewhere('fetching')
    await using program = other.start(['image', 'build', 'fetched', '--locked'])
    const visitor = await gate.visitor()
    program.child.kill('SIGKILL')
    await program.ended
    const late = new Promise(resolve => setTimeout(() => resolve('still fetching'), 20_000).unref())
    expect(await Promise.race([visitor.gone, late])).not.toBe('still fetching')
  })
})

const tinyRecipe = (url: string): string =>
  `from: { dnf: 9 }\nrepositories: { tiny: { url: "${url}", trusted: true } }\npackages: [tiny-shell, tool]\n`

/** Two builds of one image, both in the step before either goes on; the digests they give. */
async function bothAtOnce(here: Lab): Promise<string[]> {
  const programs = [here.start(['image', 'build', name, '--json']), here.start(['image', 'build', name, '--json'])]
  // One that ends before it comes has failed; it is asked why below.
  const early = Promise.race(programs.map(program => program.ended))
  const visitors = await Promise.race([early.then(() => []), Promise.all([gate.visitor(), gate.visitor()])])
  for (const visitor of visitors) visitor.open()
  for (const program of programs)
    expect([await program.ended, program.stderr]).toEqual([0, expect.not.stringContaining('error:')])
  return programs.map(program => (JSON.parse(program.stdout) as Built).digest)
}

describe('two builds of one image at once', () => {
  it('with a lock give the same image, once', async () => {
    const digests = await bothAtOnce(lab.elsewhere('warm'))
    // Which of the two wrote the lock last is chance; from now on it decides.
    gate.openForAll()
    const settled = await lab.elsewhere('warm').build(name)
    expect(digests).toContain(settled.digest)
    const cold = lab.elsewhere('cold')
    const [c, d] = await Promise.all([cold.build(name), cold.build(name)])
    expect([c.digest, d.digest]).toEqual([settled.digest, settled.digest])
    expect(await cold.images()).toEqual([`${name}@${settled.digest}`])
    expect(await readdir(lab.path('cold/images/work'))).toEqual([])
    expect((await cold.muster(['image', 'verify'])).status).toBe(0)
    expect((await cold.muster(['image', 'log', name])).stdout).toContain('run touch /etc/before')
  })
})

/** Runs in a mount namespace of its own, with a small disk as data directory; then looks at what is left there. */
async function onSmallDisk(size: string, image: string) {
  const script = `
    mkdir -p "$1" && mount -t tmpfs -o size=${size} none "$1"
    "$2" image build ${image} --data "$1" --site "$3"
    status=$?
    echo "work: $(ls -A "$1/images/work")"
    echo "new: $(ls -A "$1/images/layers" | grep new-)"
    echo "tmp: $(ls -A "$1/images/tmp")"
    "$2" image ls --data "$1"
    exit $status
  `
  const small = lab.path('small')
  return run('unshare', ['--mount', '--propagation', 'private', 'sh', '-c', script, 'sh', small, MUSTER, lab.site])
}
const LEFT = 'work: \nnew: \ntmp: \nno images yet: muster image build NAME\n'

describe('a disk that is full', () => {
  it.each([
    [
      'a base is unpacked',
      '1m',
      'from: { directory: ../../../root }\n',
      'full: from directory: no space is left on the disk',
    ],
    [
      'a step writes',
      '8m',
      'from: { directory: ../../../root }\nsteps: [{ name: fill, run: "dd if=/dev/zero of=/big bs=1M count=20" }]\n',
      'full: fill: no space is left on the disk',
    ],
  ])('when %s is an error that says so, and nothing is left of the build', async (_, size, recipe, message) => {
    await lab.recipe('full', recipe)
    const ran = await onSmallDisk(size, 'full')
    expect(errorOf(ran)).toBe(message)
    expect(hintOf(ran)).toBe('make room: muster image gc')
    expect(ran).toMatchObject({ status: 1, stdout: LEFT })
  })

  it.each([['squashfs'], ['cpio.zst'], ['cpio.gz'], ['erofs']])('when %s is packed is the same', async form => {
    // 4 MB that cannot be compressed: the layers fit, the pack does not.
    const step = 'steps: [{ run: "head -c 4000000 /dev/urandom >/big" }]'
    await lab.recipe('full', `from: { directory: ../../../root }\n${step}\noutputs: [${form}]\n`)
    const ran = await onSmallDisk('8m', 'full')
    expect(errorOf(ran)).toMatch(/no space is left/)
    expect(hintOf(ran)).toBe('make room: muster image gc')
    expect(ran).toMatchObject({ status: 1, stdout: LEFT })
  })
})

it('the lock of a site is whole, whatever happened', async () => {
  for (const image of await readdir(lab.path('site/images'))) {
    const files = await readdir(lab.path('site/images', image))
    expect(files.filter(file => file !== 'image.yaml' && file !== 'lock.json')).toEqual([])
    const locks = files.filter(file => file === 'lock.json')
    const texts = await Promise.all(locks.map(file => readFile(lab.path('site/images', image, file), 'utf8')))
    expect(texts.map(text => (JSON.parse(text) as { schema: string }).schema)).toEqual(locks.map(() => 'muster.lock/1'))
  }
})
