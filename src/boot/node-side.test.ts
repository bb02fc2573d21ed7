/** What nodes run to get their files, against the node API as it is. */
import { once } from 'node:events'
import {
  chmod,
  chown,
  lstat,
  mkdir,
  mkdtemp,
  readFile,
  readdir,
  readlink,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { type Server as HttpServer, createServer } from 'node:http'
import type { Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pino } from 'pino'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { Authority } from '../ca/authority.ts'
import { exec } from '../lib/exec.ts'
import { Enrolment } from './enrolment.ts'
import type { KnownMachine, ViewIndex } from './index-view.ts'
import { createNodeApi } from './node-api.ts'
import { MAC, boots, indexOf, prov, sha256Of } from './testing.ts'

const SCRIPT = join(import.meta.dirname, '../../node/modules/muster-agent/muster-files')
/** Too long ago for any window. */
const AN_HOUR = 3600_000

let base: string
let authority: Authority
beforeAll(async () => {
  base = await mkdtemp(join(tmpdir(), 'muster-node-side-'))
  authority = await Authority.open(join(base, 'ca'))
}, 120_000)
afterAll(() => rm(base, { recursive: true }))

let root: string
let index: ViewIndex
let enrolment: Enrolment
let api: Server
let plain: HttpServer
let pem: string
let contents: Map<string, Buffer>
let lines: string[]
let isCut: boolean
let asked: string[]
let now: number
let elapsed: number

beforeEach(async () => {
  root = await mkdtemp(join(base, 'root-'))
  await mkdir(join(root, 'etc'), { mode: 0o755 })
  index = indexOf({ nodes: [boots('n1', { interfaces: [prov('127.0.0.1', { mac: MAC })] })] })
  contents = new Map()
  lines = []
  isCut = false
  asked = []
  now = Date.now()
  elapsed = 0
  enrolment = await Enrolment.open({
    key: authority.nodeKey,
    file: join(root, 'enrolments.jsonl'),
    index: () => index,
    tell: () => {},
    now: () => new Date(now),
    elapsed: () => elapsed,
  })
  // Long enough to know who is up.
  elapsed = 100
  const files = {
    list: () =>
      lines.length === 0 ? undefined : { version: sha256Of(list()).slice(0, 16), text: Buffer.from(list()) },
    content: (_: string, sha256: string) => contents.get(sha256),
  }
  const logger = pino({ level: 'silent' })
  api = createNodeApi({ logger, enrolment, files }, await authority.serverFor(['127.0.0.1']))
  api.on('request', ({ method, url }: { method: string; url: string }) => void asked.push(`${method} ${url}`))
  api.listen(0, '127.0.0.1')
  pem = authority.pem
  plain = createServer((_, response) => response.end(pem)).listen(0, '127.0.0.1')
  await Promise.all([once(api, 'listening'), once(plain, 'listening')])
  await put('proc/uptime', '12.50 20.00\n')
  await put('proc/self/mountinfo', '22 1 0:20 / /run rw - tmpfs tmpfs rw\n')
  await boot()
})
afterEach(async () => {
  for (const server of [api, plain]) {
    server.closeAllConnections()
    server.close()
  }
  await enrolment[Symbol.asyncDispose]()
})

const list = (): string => `muster-files 1\n${lines.join('\n')}\n${isCut ? '' : 'end\n'}`
const portOf = (server: Server | HttpServer): number => (server.address() as AddressInfo).port

async function put(path: string, text: string): Promise<void> {
  await mkdir(dirname(join(root, path)), { recursive: true, mode: 0o755 })
  await writeFile(join(root, path), text)
}

/** The machine starts: it gets its script, and with it a boot. */
async function boot(): Promise<void> {
  await rm(join(root, 'run'), { recursive: true, force: true })
  const id = enrolment.newBoot(index.machine(MAC) as KnownMachine, MAC, '127.0.0.1')
  const plan = {
    node: 'n1',
    mac: MAC,
    boot: id,
    servers: `http://127.0.0.1:${portOf(plain)}`,
    enrol: `https://127.0.0.1:${portOf(api)}`,
    ca: sha256Of(authority.pem),
  }
  await put(
    'run/muster/boot',
    Object.entries(plan)
      .map(([key, value]) => `muster.${key}=${value}\n`)
      .join(''),
  )
}

const file = (
  path: string,
  text: string,
  more: { when?: string; mode?: string; owner?: string; run?: string } = {},
) => {
  const { when = 'live', mode = '0644', owner = 'root', run = '-' } = more
  contents.set(sha256Of(text), Buffer.from(text))
  return ['file', when, mode, owner, owner, sha256Of(text), text.length, run, path].join('\t')
}
const other = (kind: string, path: string, ...target: string[]): string =>
  [kind, 'live', '-', '-', '-', '-', '-', '-', path, ...target].join('\t')
const read = (path: string): Promise<string> => readFile(join(root, path), 'utf8')
const modeOf = async (path: string): Promise<string> => ((await lstat(join(root, path))).mode & 0o7777).toString(8)
const problem = (): Promise<string> => read('run/muster/files.problem').catch(() => '')

describe.for([['dash'], ['busybox', 'sh']] as const)('under %s', shell => {
  const run = async (action: string, patience = 0): Promise<{ exitCode: number; stdout: string }> => {
    const [command, ...words] = [...shell, SCRIPT, action]
    const env = { MUSTER_ROOT: root, MUSTER_PATIENCE: String(patience) }
    const { exitCode, stdout } = await exec(command, words, { env, allow: [1, 2] })
    return { exitCode, stdout: stdout.toString('utf8') }
  }

  it('writes what it is given, as it is given, before the system starts', async () => {
    await put('etc/motd', 'old\n')
    await put('etc/stale', 'old\n')
    lines = [
      'run\t1\ttouch reloaded',
      'dir\tboot\t0750\troot\troot\t-\t-\t-\t/etc/own',
      file('/etc/motd', 'welcome to n1\n', { when: 'boot', mode: '0644', run: '1' }),
      file('/etc/new/deep/key', 'secret', { when: 'boot', mode: '0400' }),
      file('/etc/empty', ''),
      other('link', '/etc/localtime', '/usr/share/zoneinfo/UTC'),
      other('absent', '/etc/stale'),
    ]
    expect(await run('boot')).toMatchObject({ exitCode: 0 })
    expect(await read('etc/motd')).toBe('welcome to n1\n')
    expect(await read('etc/empty')).toBe('')
    expect(await read('etc/new/deep/key')).toBe('secret')
    expect(await modeOf('etc/new/deep/key')).toBe('400')
    expect(await modeOf('etc/new/deep')).toBe('755')
    expect(await modeOf('etc/own')).toBe('750')
    expect(await readlink(join(root, 'etc/localtime'))).toBe('/usr/share/zoneinfo/UTC')
    expect((await readdir(join(root, 'etc'))).toSorted()).toEqual(['empty', 'localtime', 'motd', 'new', 'own'])
    expect(await readdir(join(root, 'etc/new/deep'))).toEqual(['key'])
    expect(await read('run/muster/files')).toBe(list())
    expect(await problem()).toBe('')
  })

  it('keeps what proves who it is to itself', async () => {
    lines = [file('/etc/motd', 'hello\n')]
    await run('boot')
    for (const name of ['beat', 'credential', 'secret', 'files']) expect(await modeOf(`run/muster/${name}`)).toBe('600')
    expect((await readdir(join(root, 'run/muster'))).toSorted()).toEqual([
      'beat',
      'boot',
      'ca.pem',
      'credential',
      'files',
      'renew-at',
      'secret',
    ])
  })

  it('asks once whether anything is new, and fetches nothing that it has', async () => {
    lines = [file('/etc/motd', 'one\n'), file('/etc/issue', 'two\n')]
    await run('boot')
    asked = []
    expect(await run('live')).toMatchObject({ exitCode: 0, stdout: '' })
    expect(asked).toEqual(['GET /node/files'])
    asked = []
    lines = [file('/etc/motd', 'one\n'), file('/etc/issue', 'three\n')]
    await run('live')
    expect(await read('etc/issue')).toBe('three\n')
    expect(asked).toEqual(['GET /node/files', `GET /node/files/${sha256Of('three\n')}`])
  })

  it('runs what follows a change, once, and only after one', async () => {
    const runs = `echo ran >>${root}/ran`
    const both = (text: string): string[] => [
      `run\t1\t${runs}`,
      file('/etc/a', `a${text}`, { run: '1' }),
      file('/etc/b', `b${text}`, { run: '1' }),
    ]
    lines = both('1')
    await run('boot')
    lines = both('2')
    await run('live')
    expect(await read('ran')).toBe('ran\n')
    lines = [...both('2'), file('/etc/c', 'c')]
    await run('live')
    expect(await read('ran')).toBe('ran\n')
  })

  it('leaves files alone that are for the next boot', async () => {
    lines = [file('/etc/fstab', 'one\n', { when: 'boot' })]
    await run('boot')
    lines = [file('/etc/fstab', 'two\n', { when: 'boot' })]
    expect(await run('live')).toMatchObject({ exitCode: 0 })
    expect(await read('etc/fstab')).toBe('one\n')
    await boot()
    await run('boot')
    expect(await read('etc/fstab')).toBe('two\n')
  })

  it('writes into a file that is a mount, in place of which nothing can be put', async () => {
    lines = [file('/etc/hosts', 'one\n')]
    await run('boot')
    const before = await lstat(join(root, 'etc/hosts'))
    await put('proc/self/mountinfo', '40 1 0:20 /hosts /etc/hosts rw - tmpfs tmpfs rw\n')
    lines = [file('/etc/hosts', 'two\n')]
    await run('live')
    expect(await read('etc/hosts')).toBe('two\n')
    expect((await lstat(join(root, 'etc/hosts'))).ino).toBe(before.ino)
  })

  it('never writes where somebody else could have put a link', async () => {
    await mkdir(join(root, 'home/ann/.ssh'), { recursive: true })
    await chown(join(root, 'home/ann'), 1000, 1000)
    await mkdir(join(root, 'target'))
    await symlink(join(root, 'target'), join(root, 'home/ann/dir'))
    lines = [file('/home/ann/dir/authorized_keys', 'key\n'), file('/etc/motd', 'hello\n')]
    expect(await run('boot')).toMatchObject({ exitCode: 0 })
    expect(await problem()).toBe(
      '/home/ann/dir/authorized_keys is below /home/ann, to which others than root may write\n',
    )
    expect(await readdir(join(root, 'target'))).toEqual([])
    // The others are there all the same, and that one is tried again.
    expect(await read('etc/motd')).toBe('hello\n')
    await chown(join(root, 'home/ann'), 0, 0)
    expect(await run('live')).toMatchObject({ exitCode: 0 })
    expect(await readdir(join(root, 'target'))).toEqual(['authorized_keys'])
    expect(await problem()).toBe('')
  })

  it('writes as its owner into a directory that belongs to that one', async () => {
    await mkdir(join(root, 'etc/munge'), { mode: 0o700 })
    await chown(join(root, 'etc/munge'), 1, 1)
    await chmod(root, 0o755)
    await chmod(base, 0o755)
    lines = [file('/etc/munge/munge.key', 'secret', { owner: 'daemon', mode: '0400' })]
    expect(await run('boot')).toMatchObject({ exitCode: 0 })
    expect(await problem()).toBe('')
    expect(await read('etc/munge/munge.key')).toBe('secret')
    expect(await modeOf('etc/munge/munge.key')).toBe('400')
    expect((await lstat(join(root, 'etc/munge/munge.key'))).uid).toBe(1)
    expect(await readdir(join(root, 'etc/munge'))).toEqual(['munge.key'])
    lines = [file('/etc/munge/munge.key', 'secret', { owner: 'daemon', mode: '0440' })]
    expect(await run('live')).toMatchObject({ exitCode: 0 })
    expect(await modeOf('etc/munge/munge.key')).toBe('440')
    expect(await read('etc/munge/munge.key')).toBe('secret')
  })

  it('but not below a directory that belongs to its owner: in there, that one could have put a link', async () => {
    await mkdir(join(root, 'home/daemon/keys'), { recursive: true })
    await chown(join(root, 'home/daemon'), 1, 1)
    await mkdir(join(root, 'target'))
    await symlink(join(root, 'target'), join(root, 'home/daemon/elsewhere'))
    lines = ['keys', 'elsewhere'].map(dir => file(`/home/daemon/${dir}/key`, 'secret', { owner: 'daemon' }))
    lines.push(other('link', '/home/daemon/link', '/etc'))
    await run('boot')
    expect(await problem()).toMatch(/^\/home\/daemon\/keys\/key is below \/home\/daemon, to which others than root may/)
    expect(await readdir(join(root, 'target'))).toEqual([])
    expect((await readdir(join(root, 'home/daemon'))).toSorted()).toEqual(['elsewhere', 'keys'])
    expect(await readdir(join(root, 'home/daemon/keys'))).toEqual([])
  })

  it('takes the place of a link, and does not follow it', async () => {
    await put('outside', 'mine\n')
    await symlink(join(root, 'outside'), join(root, 'etc/motd'))
    lines = [file('/etc/motd', 'hello\n')]
    await run('boot')
    expect(await read('outside')).toBe('mine\n')
    expect((await lstat(join(root, 'etc/motd'))).isFile()).toBe(true)
  })

  it('sets owner and mode right where only those have changed', async () => {
    lines = [file('/etc/key', 'secret', { mode: '0400' })]
    await run('boot')
    await chmod(join(root, 'etc/key'), 0o644)
    lines = [file('/etc/key', 'secret', { mode: '0600', owner: 'daemon' })]
    await run('live')
    expect(await modeOf('etc/key')).toBe('600')
    expect((await lstat(join(root, 'etc/key'))).uid).toBe(1)
  })

  it('says so when a content is not what the list says, and leaves the file as it was', async () => {
    await put('etc/motd', 'old\n')
    lines = [file('/etc/motd', 'hello\n')]
    contents.set(sha256Of('hello\n'), Buffer.from('other\n'))
    expect(await run('boot')).toMatchObject({ exitCode: 1 })
    expect(await problem()).toMatch(/gave a file that is not the one of the list/)
    expect(await read('etc/motd')).toBe('old\n')
  })

  it('takes no list of which the end is missing', async () => {
    lines = [file('/etc/motd', 'hello\n')]
    await run('boot')
    lines = [file('/etc/motd', 'other\n')]
    isCut = true
    expect(await run('live')).toMatchObject({ exitCode: 1 })
    expect(await problem()).toBe('a server gave a list of files that cannot be read\n')
    expect(await read('etc/motd')).toBe('hello\n')
  })

  it('believes no server but those of the authority it was told of', async () => {
    pem = 'something else'
    expect(await run('boot')).toMatchObject({ exitCode: 1 })
    expect(await problem()).toMatch(/^no boot server gave the certificate of the site/)
    const stranger = await Authority.open(join(root, 'stranger'))
    await put('run/muster/ca.pem', stranger.pem)
    expect(await run('boot')).toMatchObject({ exitCode: 1 })
    expect(await problem()).toMatch(/^this boot is not believed: https:.*certificate/)
    expect(asked).toEqual([])
  })

  it('says why it is not believed', async () => {
    now += AN_HOUR
    expect(await run('boot')).toMatchObject({ exitCode: 1 })
    expect(await problem()).toMatch(/^this boot is not believed: https:\/\/127\.0\.0\.1:\d+: ./)
  })

  it('renews its credential, and loses it with the next boot of another machine', async () => {
    lines = [file('/etc/motd', 'hello\n')]
    await run('boot')
    const before = await read('run/muster/credential')
    now += 60_000
    expect(await run('renew')).toMatchObject({ exitCode: 0 })
    expect(await read('run/muster/credential')).not.toBe(before)
    expect(await run('live')).toMatchObject({ exitCode: 0 })
    await enrolment.revoke('n1')
    expect(await run('renew')).toMatchObject({ exitCode: 1 })
    expect(await run('live')).toMatchObject({ exitCode: 1 })
  })

  it('has nothing to do where the site has no files for it', async () => {
    expect(await run('boot')).toMatchObject({ exitCode: 0, stdout: '' })
    expect(await read('run/muster/files')).toBe('muster-files 1\nend\n')
  })
})
