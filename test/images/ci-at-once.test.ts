/** Several images at once in one run: what goes together, what waits, and how it reads. */
import { rm } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MUSTER, type Program, type Ran, git, start } from '../cli/testing.ts'
import { type Gate, startGate } from './gate.ts'
import { type Lab, makeLab, mountsBelow, processesWith } from './testing.ts'

let lab: Lab
let gate: Gate

const recipe = (from: string, step: string): string => `from: ${from}\noutputs: [squashfs]\nsteps: [{ run: ${step} }]\n`
const ROOT = '{ directory: ../../../root }'
/** A test that does not end before the gate lets it through. */
const meeting = (name: string): Record<string, string> => ({
  'tests/meet.yaml': `exec:\n  meet: { on: outside, run: [curl, --silent, --fail, "${gate.url}/${name}"] }\n`,
})

beforeAll(async () => {
  lab = await makeLab()
  gate = await startGate()
  await lab.recipe('one', recipe(ROOT, 'touch /etc/one'), meeting('one'))
  await lab.recipe('two', recipe(ROOT, 'touch /etc/two'), meeting('two'))
  await lab.recipe('three', recipe(ROOT, 'exit 3'))
  await lab.recipe('top', recipe('{ image: one }', 'touch /etc/top'))
  await git(lab.site, 'init', '--quiet', '--initial-branch=main')
  await git(lab.site, 'add', '.')
  await git(lab.site, 'commit', '--quiet', '--message', 'First')
})
afterAll(async () => {
  await gate[Symbol.asyncDispose]()
  await lab[Symbol.asyncDispose]()
})

const ROOM = '--memory 64GiB --json'
/** Nothing is pushed. */
const env = { MUSTER_SERVER: '' }
const ci = (words: string): Promise<Ran> => lab.muster(['ci', 'run', ...words.split(' ')], { env })
const startCi = (words: string): Program =>
  start(MUSTER, ['ci', 'run', ...words.split(' '), '--data', lab.data, '--site', lab.site], { cwd: lab.dir, env })

interface Image {
  readonly name: string
  readonly failed?: { readonly step: string }
}
const imagesOf = ({ stdout }: { readonly stdout: string }): string[] =>
  (JSON.parse(stdout) as { images: Image[] }).images.map(
    ({ name, failed }) => `${name}${failed === undefined ? '' : `: ${failed.step} failed`}`,
  )
/** The lines that say which part of the work follows, or that some begins. */
const outline = ({ stderr }: { readonly stderr: string }): string[] =>
  stderr.split('\n').filter(line => line.startsWith('== ') || line.endsWith(': begins'))

describe('images that need nothing of each other', () => {
  it('are on their way at once; what each says stands together', async () => {
    await using running = startCi(`one two --jobs 2 ${ROOM}`)
    const visitors = [await gate.visitor(), await gate.visitor()]
    expect(visitors.map(({ path }) => path).sort()).toEqual(['/one', '/two'])
    expect(outline(running)).toEqual(['== check the site', 'one: begins', 'two: begins'])
    // The second first: it is also printed first.
    visitors.find(({ path }) => path === '/two')?.open()
    await expect.poll(() => outline(running), { timeout: 60_000 }).toContain('== test two')
    visitors.find(({ path }) => path === '/one')?.open()
    expect(await running.ended).toBe(0)
    expect(outline(running).slice(3)).toEqual(['== build two', '== test two', '== build one', '== test one'])
    expect(imagesOf(running)).toEqual(['one', 'two'])
  })

  it('are one after another where there is room for no more, and then are seen as they go', async () => {
    gate.openForAll()
    const expected = ['== check the site', '== build one', '== test one', '== build two', '== test two']
    expect(outline(await ci(`one two --jobs 1 ${ROOM}`))).toEqual(expected)
    expect(outline(await ci('one two --jobs 2 --memory 1GiB'))).toEqual(expected)
  })
})

describe('images that do', () => {
  it('wait, and a failure stops nobody else; the result names all', async () => {
    const ran = await ci(`top three one --jobs 3 ${ROOM}`)
    expect(ran.status).toBe(1)
    expect(imagesOf(ran)).toEqual(['top', 'three: build failed', 'one'])
    const lines = outline(ran)
    expect(lines.slice(0, 3)).toEqual(['== check the site', 'three: begins', 'one: begins'])
    expect(lines.indexOf('top: begins')).toBeGreaterThan(lines.indexOf('== test one'))
  })
})

describe('a run', () => {
  it('with room that is none', async () => {
    const ran = await ci('one --jobs 0')
    expect(ran).toMatchObject({ status: 2 })
    expect(ran.stderr).toContain('error: 0 is too small: at least 1\n')
  })

  it('stops at mistakes in tests, before anything is built', async () => {
    await lab.recipe('wrong', recipe(ROOT, 'touch /etc/wrong'), { 'tests/a.yaml': 'fiel: {}\n' })
    const ran = await ci('one')
    await rm(lab.path('site/images/wrong'), { recursive: true })
    expect(ran.status).toBe(1)
    expect(ran.stderr).toContain(
      'images/wrong/tests/a.yaml:1:1: fiel: unknown resource — did you mean file?\nerror: the site has 1 error\n',
    )
    expect(outline(ran)).toEqual(['== check the site'])
  })
})

describe('interrupted', () => {
  it('all that run end, and nothing of them is left', async () => {
    await using shut = await startGate()
    for (const name of ['left', 'right'])
      await lab.recipe(name, recipe(ROOT, `touch /etc/${name}`), {
        'tests/meet.yaml': `exec:\n  meet: { on: outside, run: [curl, --silent, "${shut.url}/${name}"] }\n`,
      })
    await using running = startCi(`left right --jobs 2 ${ROOM}`)
    const visitors = [await shut.visitor(), await shut.visitor()]
    running.child.kill('SIGINT')
    await Promise.all(visitors.map(({ gone }) => gone))
    expect(await running.ended).toBe(130)
    expect(outline(running)).toContain('== test left')
    expect(outline(running)).toContain('== test right')
    await expect.poll(() => processesWith(shut.url), { timeout: 30_000 }).toEqual([])
    expect(await mountsBelow(lab.dir)).toEqual([])
  })
})
