import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type Server, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest'
import { exec } from '../lib/exec.ts'
import { VERSION } from '../version.ts'
import { runCli } from './run.ts'
import { type Ran, type World, memoryIo, run } from './testing.ts'

/** A server that answers what its address says: `/STATUS/CODE`, or rubbish. */
let server: Server
let url: string
let dir: string

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'muster-cli-'))
  await site('good', { 'nodes.yaml': 'n[1-3]: { groups: [compute] }\n', 'groups/compute.yaml': '{}\n' })
  await exec('git', ['init', '--quiet', join(dir, 'good')])
  await site('bad', { 'nodes.yaml': 'n[1-3]: { gruops: [compute] }\n', 'groups/compute.yaml': '{}\n' })
  await site('untested', { 'nodes.yaml': '', 'images/base/tests/a.yaml': 'user:\n  ada: { uid: 1000 }\n' })
  await site('files', {
    'nodes.yaml': 'n1: { files: { /etc/motd: motd.j2, /etc/bad: bad.j2 } }\n',
    'files/motd.j2': 'This is {{ name }}.\n',
    'files/bad.j2': '\n{{ vars.missing }}\n',
  })
  await site('early', { 'nodes.yaml': '', 'images/gpu/tests/a.yaml': 'user:\n  ada: { exists: true }\n' })
  server = createServer((request, response) => {
    const [, status = '', code = ''] = (request.headers.authorization ?? '').replace('Bearer ', '/').split('/')
    response.statusCode = Number(status)
    if (code === 'rubbish') response.end('<html>')
    else response.end(JSON.stringify({ code, message: 'said so', hint: 'do that', details: ['nodes.yaml:1:1: here'] }))
  })
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(async () => {
  await new Promise(done => server.close(done))
  await rm(dir, { recursive: true })
})

async function site(name: string, files: Record<string, string>): Promise<void> {
  const all = {
    'site.yaml':
      'site: demo\nnetworks:\n  prov: { cidr: 10.77.0.0/16, gateway: 10.77.0.1 }\ndefaults:\n  boot: { image: base }\n',
    'images/base/image.yaml': 'from: { debian: bookworm }\n',
    ...files,
  }
  for (const [path, text] of Object.entries(all)) {
    await mkdir(join(dir, name, path, '..'), { recursive: true })
    await writeFile(join(dir, name, path), text)
  }
}

const NOWHERE = { MUSTER_SERVER: '/nonexistent/muster.sock' }
const line = (words: string, world: World = {}): Promise<Ran> =>
  run(words === '' ? [] : words.split(' '), { env: NOWHERE, ...world })

describe('exit status 0', () => {
  test.each<[string, World, string]>([
    ['--version', {}, `${VERSION}\n`],
    ['-V', {}, `${VERSION}\n`],
    ['nodeset fold n1 n2', {}, 'n[1-2]\n'],
    ['nodeset fold', { input: 'n1\nn2 n4' }, 'n[1-2,4]\n'],
    ['nodeset diff n1 n1', {}, ''],
    ['nodeset fold n1 n2 --json', {}, '"n[1-2]"\n'],
    ['--json nodeset fold n1 n2', {}, '"n[1-2]"\n'],
    ['-o yaml nodeset count n[1-3]', {}, '3\n'],
    // What a command line ends with is its own to choose: options stand before or behind.
    ['nodeset count n[1-3] -o json', {}, '3\n'],
  ])('%s', async (words, world, stdout) => {
    expect(await line(words, world)).toEqual({ status: 0, stdout, stderr: '' })
  })

  it('for a site with tests of an image that has no recipe, which may be meant', async () => {
    const cwd = join(dir, 'early')
    expect(await line('site check', { cwd })).toEqual({
      status: 0,
      stdout: '',
      stderr: 'warning: images/gpu/tests:1:1: nothing runs these tests: there is no recipe images/gpu/image.yaml\n',
    })
    const { stdout, stderr } = await line('site check --json', { cwd })
    expect(stderr).toBe('')
    expect(JSON.parse(stdout)).toMatchObject({ problems: [], warnings: [{ file: 'images/gpu/tests' }] })
  })

  it('for a file of a node', async () => {
    expect(await line('files show n1 /etc/motd', { cwd: join(dir, 'files') })).toEqual({
      status: 0,
      stdout: 'This is n1.\n',
      stderr: '',
    })
  })

  it('for a site without mistakes, about which nothing needs to be said', async () => {
    expect(await line('site check', { cwd: join(dir, 'good') })).toEqual({ status: 0, stdout: '', stderr: '' })
  })
})

describe('exit status 1', () => {
  it('for a site with mistakes, which are the result', async () => {
    expect(await line('site check', { cwd: join(dir, 'bad') })).toEqual({
      status: 1,
      stdout: 'nodes.yaml:1:11: n[1-3].gruops: unknown key — did you mean groups?\n',
      stderr: '1 error\n',
    })
  })

  it('for a site with mistakes, as JSON', async () => {
    const { status, stdout, stderr } = await line('site check --json', { cwd: join(dir, 'bad') })
    expect({ status, stderr }).toEqual({ status: 1, stderr: '' })
    expect(JSON.parse(stdout)).toMatchObject({ nodes: 3, problems: [{ file: 'nodes.yaml', line: 1, column: 11 }] })
  })

  it('for files of a node that cannot all be rendered', async () => {
    const { status, stdout } = await line('files show n1 --json', { cwd: join(dir, 'files') })
    expect(status).toBe(1)
    const about = { kind: 'file', owner: 'root', group: 'root', mode: '0644', when: 'boot' }
    expect(JSON.parse(stdout)).toEqual([
      { path: '/etc/bad', source: 'files/bad.j2', ...about, problem: 'files/bad.j2: line 2: there is no vars.missing' },
      { path: '/etc/motd', source: 'files/motd.j2', ...about, size: 12, secret: false },
    ])
    expect(await line('files show n1 /etc/mtd', { cwd: join(dir, 'files') })).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('n1 gets no /etc/mtd — did you mean /etc/motd?') as string,
    })
  })

  it('for mistakes in the tests of an image', async () => {
    expect(await line('site check', { cwd: join(dir, 'untested') })).toEqual({
      status: 1,
      stdout: 'images/base/tests/a.yaml:2:3: user.ada.exists: is missing\n',
      stderr: '1 error\n',
    })
  })

  it('for node sets that differ', async () => {
    expect(await line('nodeset diff n[1-10] n[5-12]')).toEqual({
      status: 1,
      stdout: '- n[1-4]\n+ n[11-12]\n',
      stderr: '',
    })
  })

  test.each<[string, string, World]>([
    [
      'nodeset fold n[1-',
      `error: node set n[1-, column 5: expected the end of the range 1-, found the end
hint:  node sets look like n[001-128], n[1-9/2], @compute, n[1-10]!n5
`,
      {},
    ],
    [
      'site check nowhere',
      `error: /nowhere holds no site (there is no site.yaml in it)
hint:  give the directory with --site, or make one with: muster site init DIR
`,
      {},
    ],
    [
      'site check',
      `error: / is not in a site (no site.yaml here or above)
hint:  give the directory with --site, or make one with: muster site init DIR
`,
      {},
    ],
    [
      'node rm n1',
      `error: not confirmed: remove n1 from the site?
hint:  not a terminal: say --yes to go on
`,
      { input: 'y\n' },
    ],
  ])('%s', async (words, stderr, world) => {
    expect(await line(words, world)).toEqual({ status: 1, stdout: '', stderr })
  })
})

describe('exit status 2', () => {
  test.each([
    ['nosuch', "error: unknown command 'nosuch'\nhint:  see muster --help\n"],
    ['site chek', "error: unknown command 'chek'\n(Did you mean check?)\nhint:  see muster site --help\n"],
    ['node show', "error: missing required argument 'node'\nhint:  see muster node show --help\n"],
    ['node ls --logn', "error: unknown option '--logn'\n(Did you mean --long?)\nhint:  see muster node ls --help\n"],
    [
      'node ls a b',
      "error: too many arguments for 'ls'. Expected 1 argument but got 2.\nhint:  see muster node ls --help\n",
    ],
    [
      '-o xml node ls',
      "error: option '-o, --output <format>' argument 'xml' is invalid. Allowed choices are table, json, yaml.\nhint:  see muster --help\n",
    ],
    [
      'completion tcsh',
      "error: command-argument value 'tcsh' is invalid for argument 'shell'. Allowed choices are bash, zsh, fish.\nhint:  see muster completion --help\n",
    ],
    ['node set n1', 'error: nothing to set: write path=value\nhint:  see --help\n'],
    ['node set n1 boot.root', 'error: boot.root is not a setting: write path=value\nhint:  see --help\n'],
    ['events -n many', 'error: many is not a whole number\nhint:  see --help\n'],
    ['events -n -1', 'error: -1 is not a whole number\nhint:  see --help\n'],
    ['audit -n many', 'error: many is not a whole number\nhint:  see --help\n'],
    ['site log -n many', 'error: many is not a whole number\nhint:  see --help\n'],
    ['site log -n -1', 'error: -1 is not a whole number\nhint:  see --help\n'],
    ['token create x --expires 5y', 'error: 5y is not a duration such as 12h or 90d\nhint:  see --help\n'],
    ['serve --listen nowhere', 'error: nowhere is not an address such as 127.0.0.1:7171 or [::1]:7171\n'],
    ['serve --listen 127.0.0.1:99999', 'error: 127.0.0.1:99999 is not an address such as 127.0.0.1:7171 or'],
    ['serve --listen 0.0.0.0:0', 'error: 0.0.0.0 is not a loopback address: tokens would travel in clear\n'],
    ['serve --tls-cert x', 'error: --tls-cert and --tls-key go together\n'],
    ['site init Bad_Name', 'error: Bad_Name is not a site name (lower-case letters, digits and -)\nhint:  give one w'],
  ])('%s', async (words, stderr) => {
    const data = words.startsWith('serve') ? ` --site ${join(dir, 'good')} --data ${join(dir, 'data')}` : ''
    const found = await line(words + data)
    expect({ status: found.status, stdout: found.stdout }).toEqual({ status: 2, stdout: '' })
    expect(found.stderr.slice(0, stderr.length)).toBe(stderr)
  })

  test.each(['', 'site', 'node', 'group', 'secret', 'token', 'nodeset'])(
    'muster %s: a command is missing, and these are there',
    async words => {
      const { status, stdout, stderr } = await line(words)
      expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
      expect(stderr).toContain('\nCommands:\n')
    },
  )

  it('for no node set where there is only a keyboard to read one from', async () => {
    expect(await line('nodeset fold', { terminal: ['stdin'] })).toEqual({
      status: 2,
      stdout: '',
      stderr: 'error: no node set was given\nhint:  see --help\n',
    })
  })
})

describe('exit status 3', () => {
  test.each(['status', 'node ls', 'site diff', 'site apply --yes', 'events', 'events --follow', 'token ls'])(
    'no server: %s',
    async words => {
      expect(await line(words)).toEqual({
        status: 3,
        stdout: '',
        stderr: `error: cannot reach the server at /nonexistent/muster.sock: there is no such socket
hint:  is it running? start it with: muster serve
`,
      })
    },
  )

  it('nobody listens', async () => {
    expect(await line('status --server http://127.0.0.1:1')).toEqual({
      status: 3,
      stdout: '',
      stderr: `error: cannot reach the server at http://127.0.0.1:1: nobody listens there
hint:  is it running? start it with: muster serve
`,
    })
  })
})

const answered = (token: string, words = 'status'): Promise<Ran> =>
  run(words.split(' '), { env: { MUSTER_SERVER: url, MUSTER_TOKEN: token } })

describe('what a server answers', () => {
  test.each([
    ['401/TOKEN_MISSING', 4],
    ['401/TOKEN_INVALID', 4],
    ['401/TOKEN_EXPIRED', 4],
    ['403/FORBIDDEN', 4],
    ['404/NODE_UNKNOWN', 1],
    ['422/SITE_INVALID', 1],
    ['429/RATE_LIMITED', 1],
    ['500/INTERNAL', 1],
  ])('%s is exit status %d', async (token, status) => {
    expect(await answered(token)).toEqual({
      status,
      stdout: '',
      stderr: 'nodes.yaml:1:1: here\nerror: said so\nhint:  do that\n',
    })
  })

  test.each(['502/rubbish', '500/CODE_OF_ANOTHER_VERSION', '200/rubbish'])('%s is told in words', async token => {
    const { status, stdout, stderr } = await answered(token)
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
    expect(stderr).toMatch(/^error: the server answered .*\nhint: {2}.*\n$/)
  })
})

describe('--debug', () => {
  const STACK = /^ {4}at /m

  test.each(['status', 'nodeset fold n[1-', 'site check'])('shows where it came from: %s', async words => {
    expect((await line(words)).stderr).not.toMatch(STACK)
    expect((await line(`${words} --debug`)).stderr).toMatch(STACK)
    expect((await line(`--debug ${words}`)).stderr).toMatch(STACK)
  })

  it('leaves error and hint as they are', async () => {
    const [plain, debug] = [await line('status'), await line('status --debug')]
    expect(debug.stderr.startsWith(plain.stderr)).toBe(true)
    expect(debug.status).toBe(plain.status)
  })
})

describe('exit status 130', () => {
  test.each(['site revert --server', 'node rm n1', 'group rm g', 'restore backup.db'])(
    'interrupted while it asks: %s',
    async words => {
      const generations = createServer((_, response) => {
        const generation = { number: 1, commit: 'c0ffee', subject: 'first' }
        response.end(JSON.stringify({ items: [generation, generation] }))
      })
      await new Promise<void>(done => generations.listen(0, '127.0.0.1', done))
      const address = `http://127.0.0.1:${(generations.address() as AddressInfo).port}`
      const io = memoryIo({ env: NOWHERE, terminal: ['stdin'] })
      const ended = runCli((words.endsWith('--server') ? `${words} ${address}` : words).split(' '), io)
      await expect.poll(() => io.said.stderr).toMatch(/\[y\/N\] $/)
      const question = io.said.stderr
      io.interrupt()
      expect(await ended).toBe(130)
      expect({ ...io.said, stderr: io.said.stderr.trimEnd() }).toEqual({ stdout: '', stderr: question.trimEnd() })
      await new Promise(done => generations.close(done))
    },
  )
})
