import { createHash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { exec } from '../../src/lib/exec.ts'
import { type Lab, errorOf, hintOf, makeLab } from './testing.ts'
import { type Ran, type RunningServer, makeSite, muster, serve } from '../cli/testing.ts'

/** Tests of an image as an administrator writes and runs them. What happens in a booted container: container.test.ts. */
let lab: Lab
beforeAll(async () => {
  lab = await makeLab()
})
afterAll(() => lab[Symbol.asyncDispose]())

const recipe = (more = ''): string => `from: { directory: ../../../root }\noutputs: [squashfs]\n${more}`
const wanting = (path: string): Record<string, string> => ({ 'tests/a.yaml': `file:\n  ${path}: { exists: true }\n` })
const test = (words: string): Promise<Ran> => lab.muster(['image', 'test', ...words.split(' ')])

describe('the tests of an image', () => {
  it('pass, and their report is kept with it', async () => {
    await lab.recipe('good', recipe('steps: [{ run: echo hello >/etc/greeting }]\n'), {
      'tests/files.yaml': 'file:\n  /etc/greeting: { exists: true, contents: [hello] }\n',
    })
    const ran = await test('good')
    expect(ran).toMatchObject({ status: 0 })
    expect(ran.stdout).toMatch(/^root {2}2 passed \(\d+\.\d s\)\ngood sha256:\w{12} has passed\n$/)
    const kept = await lab.muster(['image', 'report', 'good', '--json'])
    expect(JSON.parse(kept.stdout)).toMatchObject({
      schema: 'muster.tests/1',
      image: { name: 'good' },
      places: ['root'],
      results: [
        { id: 'files.yaml: file /etc/greeting', attribute: 'exists', status: 'passed' },
        { attribute: 'contents', status: 'passed' },
      ],
    })
  })

  it('fail with what was expected and what was found', async () => {
    await lab.recipe('bad', recipe(), { 'tests/files.yaml': 'file:\n  /etc/greeting: { exists: true }\n' })
    const ran = await test(`bad --junit ${lab.path('report.xml')}`)
    expect(ran.status).toBe(1)
    expect(ran.stdout).toMatch(
      /^failed: files\.yaml: file \/etc\/greeting: exists \(root\)\n {2}expected {2}true\n {2}found {5}false\n/,
    )
    expect(await readFile(lab.path('report.xml'), 'utf8')).toContain('<failure message="expected true, found false">')
  })

  it('that changed make another image of the same bytes', async () => {
    const before = await lab.build('good')
    await writeFile(lab.path('site/images/good/tests/more.yaml'), 'user:\n  root: { exists: true }\n')
    const after = await lab.build('good')
    expect(after.digest).not.toBe(before.digest)
    expect(after.manifest.artefacts).toEqual(before.manifest.artefacts)
    expect(after.stages).toEqual({})
    expect(after.manifest.tests?.places).toEqual(['root'])
  })

  it('can be run in part, and nothing is kept of that', async () => {
    const ran = await test('good --only more.yaml')
    expect(ran.stdout).toContain('root  1 passed')
    expect(errorOf(await lab.muster(['image', 'report', 'good']))).toMatch(/^good sha256:\w+ has not been tested$/)
  })

  it('with a mistake are named by file, line and column, and nothing is built', async () => {
    await lab.recipe('wrong', recipe(), { 'tests/a.yaml': 'file:\n  /etc/x: { exits: true }\n' })
    const ran = await test('wrong')
    expect(ran.status).toBe(1)
    expect(ran.stderr).toContain('images/wrong/tests/a.yaml:2:')
    expect(ran.stderr).toContain('did you mean exists?')
    expect((await lab.images()).filter(image => image.startsWith('wrong@'))).toEqual([])
  })

  it('of an image that has none', async () => {
    await lab.recipe('none', recipe())
    const ran = await test('none')
    expect(errorOf(ran)).toBe('the image none has no tests')
    expect(hintOf(ran)).toBe('tests are files of images/NAME/tests in the site')
  })

  it('at a place that is none', async () => {
    expect(errorOf(await test('good --place moon'))).toBe('moon is no place: root, container, vm')
  })
})

describe('watched', () => {
  it('everything is run once, then only what a change concerns', async () => {
    await lab.recipe('tdd', recipe(), {
      'tests/one.yaml': 'user:\n  root: { exists: true }\n',
      'tests/two.yaml': 'file:\n  /etc/new: { exists: true }\n',
    })
    await using program = lab.start(['image', 'test', 'tdd', '--watch'])
    await program.says(/root {2}1 passed, 1 failed[^\n]*\n[^\n]*has failed\n/)
    let from = program.stdout.length
    await writeFile(lab.path('site/images/tdd/tests/one.yaml'), 'user:\n  root: { exists: true, uid: 0 }\n')
    await program.says(/root {2}2 passed \([^\n]*not all of them run\n[^\n]*has passed\n/, from)
    from = program.stdout.length
    await writeFile(lab.path('site/images/tdd/image.yaml'), recipe('steps: [{ run: touch /etc/new }]\n'))
    await program.says(/root {2}3 passed[^\n]*\n[^\n]*has passed\n/, from)
    program.child.kill('SIGINT')
    expect(await program.ended).toBe(0)
  })
})

describe('an image that has not passed', () => {
  let server: RunningServer
  let site: string
  beforeAll(async () => {
    const nodes = { 'nodes.yaml': 'n1: { boot: { image: bad } }\nn2: { boot: { image: late } }\n' }
    site = await makeSite(lab.path('served'), {
      ...nodes,
      'images/bad/image.yaml': recipe(),
      'images/late/image.yaml': recipe(),
    })
    server = await serve(site, lab.path('served-data'))
    await muster('site apply --yes', { env: server.env })
  })
  afterAll(() => server[Symbol.asyncDispose]())
  const at = (words: string): Promise<Ran> => muster(words, { env: server.env, cwd: lab.dir })
  const put = async (path: string, body: string, type: string): Promise<string> => {
    const how = ['-s', '-X', 'PUT', '-H', `content-type: ${type}`, '--data-binary', body]
    const { stdout } = await exec('curl', ['--unix-socket', server.socket, ...how, `http://x${path}`])
    return stdout.toString('utf8')
  }

  it('reaches neither a channel nor a node', async () => {
    expect((await lab.muster(['image', 'push', 'bad'], { env: server.env })).status).toBe(0)
    const promoted = await at('image promote bad stable')
    expect(errorOf(promoted)).toMatch(/^bad@sha256:\w{12} may not become bad@stable$/)
    expect(promoted.stderr).toContain('its tests have not passed in: root (muster image test bad)')
    const explained = await at('boot explain n1')
    expect(explained.stdout).toContain('image bad has not passed its tests in root')
  })

  it('does, once it has', async () => {
    await lab.recipe('late', recipe(), wanting('/etc/motd'))
    const built = await lab.build('late')
    await lab.muster(['image', 'push', 'late'], { env: server.env })
    expect((await at('image promote late stable')).status).toBe(1)
    await lab.recipe('late', recipe(), wanting('/etc'))
    expect((await test('late')).status).toBe(0)
    await lab.muster(['image', 'push', 'late'], { env: server.env })
    expect((await at('image promote late stable')).status).toBe(0)
    expect((await at('boot explain n2')).stdout).not.toContain('has not passed')
    // The one before it has the same bytes and other tests.
    const old = await at(`image promote late@${built.digest} stable`)
    expect(old.stderr).toContain('its tests have not passed in: root')
  })

  it('is not believed to have by a report about another', async () => {
    const { digest } = await lab.build('bad')
    const good = JSON.parse((await lab.muster(['image', 'report', 'late', '--json'])).stdout) as object
    const blob = Buffer.from(JSON.stringify(good))
    const sha256 = createHash('sha256').update(blob).digest('hex')
    await writeFile(lab.path('forged'), blob)
    await put(`/api/v1/blobs/${sha256}`, `@${lab.path('forged')}`, 'application/octet-stream')
    const about = { signatures: [], report: { sha256, size: blob.length } }
    const said = await put(`/api/v1/images/bad/${digest}/about`, JSON.stringify(about), 'application/json')
    expect(said).toContain(`${sha256} is no test report of bad@`)
  })
})
