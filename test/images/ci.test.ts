import { readFile, writeFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { type Ran, type RunningServer, git, muster, serve } from '../cli/testing.ts'
import { type Lab, errorOf, makeLab } from './testing.ts'

/** One command from a commit to a channel, as a CI system runs it. */
let lab: Lab
let server: RunningServer
let key: string

const recipe = (step: string): string =>
  `from: { directory: ../../../root }\noutputs: [squashfs]\nsteps: [{ run: ${step} }]\n`
const TESTS = { 'tests/files.yaml': 'file:\n  /etc/made: { exists: true }\n' }

beforeAll(async () => {
  lab = await makeLab()
  await lab.recipe('good', recipe('touch /etc/made'), TESTS)
  await lab.recipe('bad', recipe('touch /etc/other'), TESTS)
  await git(lab.site, 'init', '--quiet', '--initial-branch=main')
  await git(lab.site, 'add', '.')
  await git(lab.site, 'commit', '--quiet', '--message', 'First')
  key = lab.path('ci.pem')
  await muster(['key', 'new', 'ci', '--signing-key', key, '--site', lab.site])
  server = await serve(lab.site, lab.path('server'))
  await muster('site apply --yes', { env: server.env })
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await lab[Symbol.asyncDispose]()
})

interface Result {
  readonly channel: string | null
  readonly images: readonly Readonly<Record<string, unknown>>[]
}

const ci = (words: string, env: Readonly<Record<string, string>> = {}): Promise<Ran> =>
  lab.muster(['ci', 'run', ...words.split(' ').filter(word => word !== '')], { env })
const resultOf = ({ stdout }: Ran): Result => JSON.parse(stdout) as Result

describe('muster ci run', () => {
  it('builds and tests without a server, and fails when one image does', async () => {
    const ran = await ci(`--json --summary ${lab.path('summary.md')}`, { MUSTER_SERVER: '' })
    expect(ran.status).toBe(1)
    const [bad, good] = resultOf(ran).images
    expect(good).toMatchObject({ name: 'good', tests: { passed: 1, failed: 0, places: ['root'] } })
    expect(good).not.toHaveProperty('failed')
    expect(bad).toMatchObject({ name: 'bad', tests: { failed: 1 }, failed: { step: 'test' } })
    expect(ran.stderr).toMatch(/^== check the site\n(bad: begins\ngood: begins\n)?== build /)
    const summary = await readFile(lab.path('summary.md'), 'utf8')
    expect(summary).toMatch(/^\| bad \| sha256:\w{12} \| 1 failed \| .*\| failed: test \|$/m)
    expect(summary).toMatch(/^\| good \| sha256:\w{12} \| 1 passed \|/m)
    expect(summary).toContain('failed: files.yaml: file /etc/made: exists (root)')
  })

  it('signs, pushes and promotes to the channel of the branch', async () => {
    const ran = await ci(`good --json --signing-key ${key}`, server.env)
    expect(ran).toMatchObject({ status: 0 })
    expect(resultOf(ran)).toMatchObject({
      channel: 'dev',
      images: [
        {
          name: 'good',
          isUnchanged: true,
          signedBy: expect.stringMatching(/^[0-9a-f]{16}$/) as string,
          channel: 'dev',
        },
      ],
    })
    const history = JSON.parse((await muster('image history good@dev --json', { env: server.env })).stdout) as object[]
    expect(history).toMatchObject([
      { by: 'root', reason: expect.stringMatching(/^ci, commit [0-9a-f]{12}$/) as string },
    ])
  })

  it('of another branch has a channel of its own, in sections the CI system folds', async () => {
    const env = { ...server.env, GITLAB_CI: 'true', CI_COMMIT_BRANCH: 'Feature/X' }
    const ran = await ci('good', env)
    expect(ran.stdout).toMatch(/^good {2}sha256:\w{12} {2}1 tests passed, pushed, good@feature-x\n$/)
    const plain = ran.stderr.replaceAll('\u001B', '^').replaceAll(/:\d+:/g, ':TIME:')
    expect(plain).toContain('^[0Ksection_start:TIME:build_good\r^[0Kbuild good\n')
    expect(plain).toContain('^[0Ksection_end:TIME:build_good\r^[0K\n')
  })

  it('of a job with nothing kept compares with what the main channel points to', async () => {
    const env = { ...server.env, CI_COMMIT_BRANCH: 'other' }
    const where = ['--data', lab.path('fresh'), '--site', lab.site, '--json', '--channel', 'other']
    const ran = await muster(['ci', 'run', 'good', ...where], { env })
    expect(ran).toMatchObject({ status: 0 })
    const [good] = resultOf(ran).images
    expect(good).toMatchObject({ packages: { added: [], removed: [], changed: [] } })
    const size = good?.['size'] as { before: number; after: number } | undefined
    expect(size?.after).toBeGreaterThan(0)
    expect(size?.before).toBe(size?.after)
  })

  it('stops at a site that is wrong', async () => {
    const file = lab.path('site/nodes.yaml')
    await writeFile(file, 'n1: { boott: {} }\n')
    const ran = await ci('good')
    await writeFile(file, '')
    expect(ran.status).toBe(1)
    expect(ran.stderr).toContain('nodes.yaml:1:7: n1.boott: unknown key — did you mean boot?')
  })
})

describe('muster ci init', () => {
  it('writes the pipeline of GitLab, and not over another', async () => {
    const init = (more: readonly string[] = []): Promise<Ran> =>
      muster(['ci', 'init', 'gitlab', '--site', lab.site, ...more])
    expect((await init()).stdout).toBe('.gitlab-ci.yml written: look at it, then commit it\n')
    const pipeline = parse(await readFile(lab.path('site/.gitlab-ci.yml'), 'utf8')) as Record<
      string,
      { script: string[] }
    >
    expect(pipeline['images']?.script).toEqual(['muster ci run --locked --summary summary.md --json > result.json'])
    expect(errorOf(await init())).toBe('.gitlab-ci.yml is there already')
    expect((await init(['--force'])).status).toBe(0)
  })

  it("writes GitHub's", async () => {
    await muster(['ci', 'init', 'github', '--site', lab.site])
    const workflow = parse(await readFile(lab.path('site/.github/workflows/muster.yml'), 'utf8')) as {
      jobs: { images: { steps: { run?: string }[] } }
    }
    expect(workflow.jobs.images.steps.some(({ run = '' }) => run.includes('muster ci run --locked'))).toBe(true)
  })
})
