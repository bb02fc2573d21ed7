import { appendFile, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from 'vitest'
import {
  BASE_ENV,
  type Ran,
  type RunningServer,
  SITE,
  git,
  makeSite,
  muster,
  normalise,
  run,
  serve,
  temporaryDirectory,
} from './testing.ts'

/** The same edits by the server and in a checkout: they end in the same files. */
const dirs: string[] = []
let server: RunningServer
let serverSite: string
let localSite: string

beforeAll(async () => {
  const dir = await temporaryDirectory()
  dirs.push(dir)
  serverSite = await makeSite(join(dir, 'site'))
  localSite = await makeSite(join(dir, 'local'))
  server = await serve(serverSite, join(dir, 'data'))
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  for (const dir of dirs) await rm(dir, { recursive: true })
})

interface Way {
  readonly way: string
  readonly site: () => string
  readonly edit: (words: string | readonly string[]) => Promise<Ran>
}
const ways: readonly Way[] = [
  {
    way: 'by the server',
    site: () => serverSite,
    edit: words => muster(words, { env: server.env }),
  },
  {
    way: 'with --site',
    site: () => localSite,
    edit: words => muster([...(typeof words === 'string' ? words.split(' ') : words), '--site', localSite]),
  },
]
const NODES = SITE['nodes.yaml'] ?? ''
const GPU = SITE['groups/gpu.yaml'] ?? ''

const comments = (text: string): string[] => text.match(/#.*/g) ?? []

describe.each(ways)('$way', ({ edit, site }) => {
  const file = (path: string): Promise<string> => readFile(join(site(), path), 'utf8')
  beforeEach(async () => {
    const first = (await git(site(), 'rev-list', '--max-parents=0', 'HEAD')).trim()
    await git(site(), 'reset', '--quiet', '--hard', first)
  })

  test.each<[words: readonly string[], path: string, content: string, message: string]>([
    [
      ['node', 'set', 'n001', 'boot.root=disk'],
      'nodes.yaml',
      `${NODES}n001:\n  boot:\n    root: disk\n`,
      'Set boot.root of n001',
    ],
    [
      ['node', 'set', 'n[001-004]', 'vars.size=3'],
      'nodes.yaml',
      NODES.replace('ip_add(index) }}" }\n', 'ip_add(index) }}" }\n  vars:\n    size: 3\n'),
      'Set vars.size of n[001-004]',
    ],
    [
      ['node', 'set', 'login1', 'boot.args+=quiet', 'boot.root=ram', '--message', 'For people'],
      'nodes.yaml',
      NODES.replace('login1: {}', 'login1:\n  boot:\n    args+: [quiet]\n    root: ram'),
      'For people',
    ],
    [
      ['node', 'add', 'n[005-006]', 'groups=[compute]'],
      'nodes.yaml',
      `${NODES}n[005-006]:\n  groups: [compute]\n`,
      'Add n[005-006]',
    ],
    [
      ['node', 'rm', 'n[003-004]', '--yes'],
      'nodes.yaml',
      NODES.replace('n[001-004]', 'n[001-002]'),
      'Remove n[003-004]',
    ],
    [
      ['node', 'rm', 'gpu[01-02]', '--yes', '-m', 'Sold'],
      'nodes.yaml',
      NODES.replace('gpu[01-02]:\n  groups: [gpu]\n', ''),
      'Sold',
    ],
    [
      ['group', 'add', 'bigmem', 'groups=[compute]', 'vars.memory=2048'],
      'groups/bigmem.yaml',
      'groups: [compute]\nvars:\n  memory: 2048\n',
      'Add group bigmem',
    ],
    [
      ['group', 'set', 'gpu', 'boot.image=base', 'vars.gres=gpu:8'],
      'groups/gpu.yaml',
      GPU.replace('image: gpu', 'image: base').replace('gpu:4', 'gpu:8'),
      'Set boot.image, vars.gres of group gpu',
    ],
    // += appends, to what stands here already, too.
    [
      ['group', 'set', 'gpu', 'boot.args+=quiet'],
      'groups/gpu.yaml',
      GPU.replace('[nouveau.modeset=0]', '[nouveau.modeset=0, quiet]'),
      'Set boot.args of group gpu',
    ],
    [
      ['group', 'set', 'gpu', 'vars='],
      'groups/gpu.yaml',
      GPU.replace('vars: { gres: "gpu:4" }\n', ''),
      'Set vars of group gpu',
    ],
  ])('%j', async (words, path, content, message) => {
    const ran = await edit(words)
    expect({ ...ran, stdout: normalise(ran.stdout) }).toEqual({
      status: 0,
      stdout: `${path}: committed as c0ffee0000 "${message}"\nnext: muster site diff, then muster site apply\n`,
      stderr: '',
    })
    expect(await file(path)).toBe(content)
    expect(await git(site(), 'log', '--format=%s')).toBe(`${message}\nFirst\n`)
    expect(await git(site(), 'status', '--porcelain')).toBe('')
  })

  it('removes a group that was added, file and all', async () => {
    await edit('group add bigmem')
    const ran = await edit('group rm bigmem --yes --message Unused')
    expect(ran.status).toBe(0)
    await expect(file('groups/bigmem.yaml')).rejects.toThrow('ENOENT')
    expect(await git(site(), 'log', '-1', '--format=%s')).toBe('Unused\n')
  })

  it('keeps every comment, whatever is edited', async () => {
    for (const words of ['node set n001 vars.a=1', 'node set n[001-004] vars.b=2', 'node rm n004 -y', 'node add x1'])
      expect((await edit(words)).status).toBe(0)
    expect(comments(await file('nodes.yaml'))).toEqual(comments(NODES))
  })

  it('takes a value out that was set, and says so where there is none', async () => {
    await edit('node set n001 boot.root=disk')
    expect((await edit('node set n001 boot.root=')).status).toBe(0)
    expect(await edit('node set n001 boot.root=')).toEqual({
      status: 1,
      stdout: '',
      stderr: 'error: boot.root is not set here\nhint:  see where it comes from with: muster explain NODE\n',
    })
  })

  it('has nothing to commit when all is so already, and that is no failure of git', async () => {
    await edit('node set n001 boot.root=disk')
    const head = await git(site(), 'rev-parse', 'HEAD')
    const { status, stdout, stderr } = await edit('node set n001 boot.root=disk')
    expect(stdout + stderr).not.toMatch(/git|a program that was needed failed/)
    expect(status).toBe(0)
    expect(await git(site(), 'rev-parse', 'HEAD')).toBe(head)
  })

  test.each([
    ['node set n999 boot.root=disk', 'error: no such node: n999\nhint:  list the nodes with: muster node ls\n'],
    ['node add n001', 'error: n001 exists already\nhint:  change it with: muster node set\n'],
    ['node rm n999 --yes', 'error: no such node: n999\nhint:  list the nodes with: muster node ls\n'],
    ['group add gpu', 'error: there is a group gpu already\nhint:  change it with: muster group set\n'],
    ['group set gpus vars.x=1', 'error: there is no group gpus\nhint:  list the groups with: muster group ls\n'],
    [
      'group rm gpu --yes',
      'error: nodes gpu[01-02] are in group gpu\nhint:  take it out of the groups of those nodes first\n',
    ],
  ])('%s is refused', async (words, stderr) => {
    expect(await edit(words)).toEqual({ status: 1, stdout: '', stderr })
    expect(await git(site(), 'log', '--format=%s')).toBe('First\n')
  })

  test.each([
    ['group set gpu boot.imgae=x', 'groups/gpu.yaml:5:3: boot.imgae: unknown key — did you mean image?\n'],
    ['node set n001 boot.imgae=x', 'n001.boot.imgae: unknown key — did you mean image?\n'],
    ['node add spare[1-2] interfaces.prov.mac=52:54:00:12:34:56', 'spare2'],
    ['node set n001 groups=[nosuch]', 'nosuch'],
    ['node set n001 boot.args+=', 'boot.args'],
  ])('%s would make the site invalid: nothing is touched', async (words, stderr) => {
    const ran = await edit(words)
    expect({ status: ran.status, stdout: ran.stdout }).toEqual({ status: 1, stdout: '' })
    expect(ran.stderr).toContain(stderr)
    expect(await git(site(), 'log', '--format=%s')).toBe('First\n')
    expect(await git(site(), 'status', '--porcelain')).toBe('')
  })

  // The lines that are named are those the edit would have made: there is nothing to correct in them.
  it('says then that nothing was changed', async () => {
    expect((await edit('group set gpu boot.imgae=x')).stderr).toMatch(/\nhint: {2}nothing was changed\b.*\n$/)
  })
})

const withoutConfig = (env: Record<string, string>, words: string): Promise<Ran> => {
  const kept = Object.entries({ ...BASE_ENV, ...env }).filter(([name]) => !/^GIT_CONFIG_(COUNT|KEY|VALUE)/.test(name))
  const clear = ['-i', ...kept.map(([name, value]) => `${name}=${value}`), 'muster', ...words.split(' ')]
  return run('env', clear, { cwd: localSite })
}

describe('whose edits they are', () => {
  it('of the server: those of the token', async () => {
    const made = await muster('token create rita --role operator', { env: server.env })
    const env = { MUSTER_SERVER: server.url, MUSTER_TOKEN: made.stdout.trim() }
    expect((await muster('node set n002 vars.by=rita', { env })).status).toBe(0)
    expect(await git(serverSite, 'log', '-1', '--format=%an')).toBe('rita\n')
  })

  it('in a checkout: of whom git says', async () => {
    await muster('node set n002 vars.by=ada --site .', { cwd: localSite })
    expect(await git(localSite, 'log', '-1', '--format=%an <%ae>')).toBe('Ada <ada@example.org>\n')
  })

  it('in a checkout: of whom the environment says, where git was told nothing', async () => {
    const env = {
      GIT_AUTHOR_NAME: 'Eve',
      GIT_AUTHOR_EMAIL: 'eve@example.org',
      GIT_COMMITTER_NAME: 'Eve',
      GIT_COMMITTER_EMAIL: 'eve@example.org',
    }
    expect(await withoutConfig(env, 'node set n002 vars.by=eve --site .')).toMatchObject({ status: 0, stderr: '' })
    expect(await git(localSite, 'log', '-1', '--format=%an <%ae>')).toBe('Eve <eve@example.org>\n')
  })

  it('in a checkout: nobody known is no reason to fail', async () => {
    expect(await withoutConfig({}, 'node set n002 vars.by=nobody --site .')).toMatchObject({ status: 0, stderr: '' })
    expect(await git(localSite, 'log', '-1', '--format=%an <%ae>')).toBe('muster <muster@localhost>\n')
  })
})

describe('uncommitted work', () => {
  it('is never committed along', async () => {
    const path = join(localSite, 'groups/compute.yaml')
    await appendFile(path, '# mine\n')
    expect((await muster('node set n003 vars.x=1 --site .', { cwd: localSite })).status).toBe(0)
    expect(await git(localSite, 'status', '--porcelain')).toBe(' M groups/compute.yaml\n')
    expect(await muster('group set compute vars.x=1 --site .', { cwd: localSite })).toEqual({
      status: 1,
      stdout: '',
      stderr: 'error: groups/compute.yaml has changes that are not committed\nhint:  commit or drop them first\n',
    })
    expect(await readFile(path, 'utf8')).toBe(`${SITE['groups/compute.yaml']}# mine\n`)
  })
})
