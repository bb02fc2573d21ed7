import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest'
import { type Lab, MUSTER, NO_SERVER, type RunOptions, git, muster, start, startLab } from './testing.ts'

/** Exit statuses and errors, of the real program. */
let lab: Lab
const tokens = { viewer: '', operator: '', revoked: '' }

beforeAll(async () => {
  lab = await startLab()
  for (const role of ['viewer', 'operator'] as const)
    tokens[role] = (await lab.muster(`token create ${role} --role ${role}`)).stdout.trim()
  tokens.revoked = (await lab.muster('token create gone')).stdout.trim()
  await lab.muster(`token revoke ${tokens.revoked.split('_')[1]}`)
})
afterAll(() => lab[Symbol.asyncDispose]())

const ERROR = /^(?:(?!error:|hint:|    at ).*\n)*error: .+\n(?:\(Did you mean .*\)\n)?hint: {2}.+\n$/

describe('an error is what, where and what to do: nothing on stdout, no stack', () => {
  test.each<[words: string, status: number, options?: RunOptions]>([
    ['nosuch', 2],
    ['site nosuch', 2],
    ['node ls --nosuch', 2],
    ['node show', 2],
    ['token create', 2],
    ['nodeset diff n1', 2],
    ['site log -n x', 2],
    ['status', 3],
    ['node ls --server http://127.0.0.1:1', 3],
    ['node ls --server nonsense', 3],
    ['node ls --server http://', 2],
    ['nodeset fold n[1-', 1],
    ['nodeset fold @compute', 1],
    ['site check', 1],
    ['site show n001', 1],
    ['site init /dev/null/site', 1],
    ['secret ls', 1],
    ['restore nothing.db --yes --data /dev/null/data', 1],
    ['backup /nonexistent/state.db', 3],
  ])('muster %s', async (words, status, options) => {
    const ran = await muster(words, options)
    expect({ status: ran.status, stdout: ran.stdout }).toEqual({ status, stdout: '' })
    expect(ran.stderr).toMatch(ERROR)
  })

  test.each([
    ['node ls n[1-', 1],
    ['node ls @nosuch', 1],
    ['node show n999', 1],
    ['node set n999 boot.root=ram', 1],
    ['node set n001 boot.nosuch=1', 1],
    ['node add n001', 1],
    ['node rm n999 --yes', 1],
    ['group set nosuch vars.x=1', 1],
    ['group add Bad! vars.x=1', 1],
    ['group rm compute --yes', 1],
    ['explain n999', 1],
    ['site revert 99 --yes', 1],
    ['token revoke nosuch', 1],
    ['backup /nonexistent/state.db', 1],
    ['events -n 0', 2],
  ])('muster %s, said by the server', async (words, status) => {
    const ran = await lab.muster(words)
    expect({ status: ran.status, stdout: ran.stdout }).toEqual({ status, stdout: '' })
    expect(ran.stderr).toMatch(ERROR)
  })

  test.each([
    'events -n 0',
    'audit -n 0',
    'token create a/b',
    'token create ci --expires 0d',
    'token create ci --expires 9999d',
  ])('muster %s is not told in words of the API', async words => {
    const { status, stderr } = await lab.muster(words)
    expect(status).not.toBe(0)
    expect(stderr).not.toMatch(/querystring|openapi|body is not valid|Too (small|big)/)
  })

  it('with --debug a stack follows', async () => {
    const { status, stdout, stderr } = await muster('status --debug')
    expect({ status, stdout }).toEqual({ status: 3, stdout: '' })
    expect(stderr).toMatch(/^error: .+\nhint: {2}.+\n.*Error: .+\n {4}at /)
  })
})

const badFile = (): string => join(lab.site, 'groups/login.yaml')

describe('a site with mistakes', () => {
  beforeAll(() => writeFile(badFile(), 'boot: { imgae: base }\nbmc: { driver: smoke }\n'))
  afterAll(() => rm(badFile()))

  it('is exit status 1, each mistake on a line of its own', async () => {
    const ran = await muster('site check', { cwd: lab.site })
    expect(ran).toEqual({
      status: 1,
      stdout: `groups/login.yaml:1:9: boot.imgae: unknown key — did you mean image?
groups/login.yaml:2:16: bmc.driver: must be one of redfish, ipmi
`,
      stderr: '2 errors\n',
    })
  })

  it('is not applied', async () => {
    const ran = await lab.muster('site apply --yes --allow-dirty')
    expect(ran).toEqual({
      status: 1,
      stdout: '',
      stderr: `groups/login.yaml:1:9: boot.imgae: unknown key — did you mean image?
groups/login.yaml:2:16: bmc.driver: must be one of redfish, ipmi
error: the site has 2 errors
hint:  correct the lines named above; what runs now is unchanged
`,
    })
  })
})

const over = (words: string, token?: string): ReturnType<typeof muster> =>
  muster(words, { env: { MUSTER_SERVER: lab.server.url, ...(token !== undefined && { MUSTER_TOKEN: token }) } })

describe('access', () => {
  it('needs a token', async () => {
    expect(await over('status')).toEqual({
      status: 4,
      stdout: '',
      stderr: `error: no token was given
hint:  give a token with MUSTER_TOKEN, or use the unix socket as root
`,
    })
  })

  it.each(['nonsense', `muster_${'0'.repeat(12)}_${'A'.repeat(43)}`, 'revoked'])(
    'needs a right one: %s',
    async token => {
      expect(await over('status', token === 'revoked' ? tokens.revoked : token)).toEqual({
        status: 4,
        stdout: '',
        stderr: 'error: the token is not valid\nhint:  make a new one with: muster token create\n',
      })
    },
  )

  it('needs the role', async () => {
    expect(await over('token ls', tokens.operator)).toEqual({
      status: 4,
      stdout: '',
      stderr: `error: that needs the role admin; operator has the role operator
hint:  ask an administrator for a token with that role
`,
    })
    expect((await over('site apply --yes', tokens.viewer)).status).toBe(4)
    expect((await over('node set n001 boot.root=ram', tokens.viewer)).status).toBe(4)
    expect((await over('backup state.db', tokens.operator)).status).toBe(4)
  })

  it('is given to those who have it', async () => {
    expect((await over('status', tokens.viewer)).status).toBe(0)
    expect((await over('site apply --yes', tokens.operator)).status).toBe(0)
  })

  it('prints nothing on stdout when applying is forbidden', async () => {
    await lab.muster('node set n002 boot.root=disk')
    expect((await over('site apply --yes', tokens.viewer)).stdout).toBe('')
  })

  it('needs no token at the socket of root, not even a right one', async () => {
    expect((await lab.muster('status', { env: { MUSTER_TOKEN: 'nonsense' } })).status).toBe(0)
  })
})

describe('nothing asks off a terminal', () => {
  test.each(['site apply', 'site revert 1', 'node rm n001', 'group rm gpu', 'restore state.db --data elsewhere'])(
    'muster %s',
    async words => {
      await lab.muster('node set n003 boot.root=disk')
      const head = await git(lab.site, 'rev-parse', 'HEAD')
      const before = await lab.muster('status')
      for (const input of [undefined, 'y\n']) {
        const ran = await lab.muster(words, input === undefined ? {} : { input })
        expect(ran.status).toBe(1)
        expect(ran.stderr).toMatch(/^error: not confirmed: .*\?\nhint: {2}not a terminal: say --yes to go on\n$/)
      }
      expect(await git(lab.site, 'rev-parse', 'HEAD')).toBe(head)
      expect(await lab.muster('status')).toEqual(before)
    },
  )

  it('does not wait for a pipe that stays open', async () => {
    await using program = start(MUSTER, ['site', 'apply'], { env: lab.server.env, input: '' })
    expect(await program.ended).toBe(1)
  })

  it('prints nothing on stdout when it is refused', async () => {
    expect((await lab.muster('site apply')).stdout).toBe('')
  })
})

describe('being interrupted', () => {
  // Ctrl-C must not have to be pressed twice.
  it.each([
    ['following events', ['events', '--follow', '--after', '0']],
    ['reading from a pipe that stays open', ['nodeset', 'fold']],
  ])('is exit status 130: %s', async (_, words) => {
    await using program = start(MUSTER, words, { env: lab.server.env, input: '' })
    // Either it has said something, or it has read all there was: both mean that it is waiting now.
    if (words.includes('--follow')) await program.says('\n')
    else await new Promise<void>(done => program.child.stdin?.write('n1\n'.repeat(100_000), () => done()))
    program.child.kill('SIGINT')
    const status = await Promise.race([program.ended, new Promise(done => setTimeout(done, 5000, 'still running'))])
    expect(status).toBe(130)
    expect(program.stderr).toBe('')
  })
})

describe('without a server', () => {
  test.each([
    'status',
    'node ls',
    'node show n001',
    'group ls',
    'site log',
    'site diff',
    'events',
    'audit',
    'token ls',
  ])('%s is exit status 3', async words => {
    expect(await muster(words)).toEqual({
      status: 3,
      stdout: '',
      stderr: `error: cannot reach the server at ${NO_SERVER}: there is no such socket
hint:  is it running? start it with: muster serve
`,
    })
  })
})
