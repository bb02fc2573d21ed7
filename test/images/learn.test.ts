/** A first set of tests from systems that are known to be good: trees, an image, machines behind a real sshd. */
import { once } from 'node:events'
import { chmod, mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readTests } from '../../src/images/tests/definitions.ts'
import { type OpenContainer, openContainer } from '../../src/images/tests/places/container.ts'
import { runChecks } from '../../src/images/tests/run.ts'
import { exec } from '../../src/lib/exec.ts'
import { type Program, type Ran, start } from '../cli/testing.ts'
import { type Lab, errorOf, hintOf, makeLab, writeTree } from './testing.ts'

const MINUTES = 60_000
const SSHD = '/usr/sbin/sshd'
const signal = new AbortController().signal
let lab: Lab
let debian: string
let key: string

/** A small Debian with something in it to be learnt; and a key pair, for whoever has a sshd. */
beforeAll(async () => {
  lab = await makeLab()
  debian = lab.path('debian')
  const flags = ['--quiet', '--variant=minbase', '--include=systemd,systemd-sysv,dbus,openssh-server,cron']
  const slim = ['man', 'doc', 'locale', 'info'].map(name => `--dpkgopt=path-exclude=/usr/share/${name}/*`)
  await exec('mmdebstrap', [...flags, ...slim, 'bookworm', debian], { timeout: 30 * MINUTES })
  await writeTree(debian, {
    'etc/fstab': '# of a test\nserver:/home\t/home nfs4 rw,_netdev 0 0\n',
    'etc/sysctl.d/50-hpc.conf': 'vm.swappiness = 10\n',
    'etc/default/locale': 'LANG=C.UTF-8\n',
  })
  await exec('chroot', [debian, 'useradd', '--uid', '1234', '--create-home', '--shell', '/bin/bash', 'ada'])
  // Its server would not be there to mount from.
  await symlink('/dev/null', join(debian, 'etc/systemd/system/home.mount'))
  key = lab.path('key')
  await exec('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', key])
}, 40 * MINUTES)
afterAll(() => lab[Symbol.asyncDispose]())

const learn = (name: string, ...words: readonly string[]): Promise<Ran> =>
  lab.muster(['image', 'learn', name, ...words], { timeout: 5 * MINUTES })
const learnedFile = (name: string, file = 'learned.yaml'): string => lab.path('site/images', name, 'tests', file)
const fromTree = (tree: string): string => `from: { directory: ../../../${tree} }\noutputs: [squashfs]\n`

describe('a tree', () => {
  test('of Debian: what is learnt of it passes in an image of it', async () => {
    await lab.recipe('compute', fromTree('debian'))
    const ran = await learn('compute', '--from', debian)
    expect(ran).toMatchObject({ status: 0, stderr: '' })
    expect(ran.stdout).toMatch(
      /^site\/images\/compute\/tests\/learned\.yaml written\nlearnt: \d+ packages, 2 services, 1 user, \d+ files, 1 mount, 1 kernel parameter\nnext: look at it, then muster image test compute\n$/,
    )
    const text = await readFile(learnedFile('compute'), 'utf8')
    expect(text).toContain('\n  openssh-server: { installed: true }\n')
    expect(text).toContain('\n  cron: { enabled: true }\n')
    expect(text).toContain('\n  ada: { exists: true, uid: 1234, gid: 1234, home: /home/ada, shell: /bin/bash,')
    expect(text).toContain(
      '\n  /etc/shadow: { exists: true, filetype: file, mode: "0640", owner: root, group: shadow }\n',
    )
    expect(text).toContain(
      '\n  /usr/bin/passwd: { exists: true, filetype: file, mode: "4755", owner: root, group: root }\n',
    )
    const tested = await lab.muster(['image', 'test', 'compute'], { timeout: 10 * MINUTES })
    expect(tested).toMatchObject({ status: 0 })
    expect(tested.stdout).toMatch(/^root {2}\d+ passed \(/)
  })

  test('and of the image itself the same is learnt', async () => {
    const ran = await learn('compute', '--from', 'image:compute', '--to', '-')
    const [, ...learnt] = (await readFile(learnedFile('compute'), 'utf8')).split('\n')
    expect(ran).toMatchObject({ status: 0, stderr: '' })
    expect(ran.stdout.split('\n').slice(1)).toEqual(learnt)
  })

  test('is not learnt twice, unless somebody says so', async () => {
    const again = await learn('compute', '--from', debian)
    expect(errorOf(again)).toBe(`${learnedFile('compute')} is there already`)
    expect(hintOf(again)).toBe('say --force to write it anew')
    const forced = await learn('compute', '--from', debian, '--force', '--kinds', 'user,mount', '--json')
    expect(JSON.parse(forced.stdout)).toEqual({
      name: 'compute',
      from: debian,
      files: [learnedFile('compute')],
      learnt: { user: 1, mount: 1 },
      notes: [],
    })
  })

  test('never changes by it', async () => {
    const state = async (): Promise<string> =>
      (await exec('find', [lab.root, '-printf', '%p %m %T@\n'])).stdout.toString()
    const before = await state()
    expect((await learn('tiny', '--from', lab.root, '--to', '-')).stdout).toContain('  ada: { exists: true, uid: 1000')
    expect(await state()).toBe(before)
  })
})

/** One that lets this key in. */
async function sshdConfig(dir: string): Promise<string> {
  await mkdir(dir)
  await exec('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', join(dir, 'host')])
  await writeFile(join(dir, 'authorized_keys'), await readFile(`${key}.pub`))
  await chmod(join(dir, 'authorized_keys'), 0o600)
  const settings = { HostKey: 'host', AuthorizedKeysFile: 'authorized_keys' }
  const paths = Object.entries(settings).map(([name, file]) => `${name} ${join(dir, file)}`)
  const rest = ['StrictModes no', 'PasswordAuthentication no', 'PidFile none', 'PermitRootLogin yes', 'UsePAM no']
  await writeFile(join(dir, 'sshd_config'), `${[...paths, ...rest].join('\n')}\n`)
  return join(dir, 'sshd_config')
}

/** What people have in ~/.ssh/config. */
const clientConfig = (more = ''): string =>
  `${more}\nHost *\n  IdentityFile ${key}\n  IdentitiesOnly yes\n  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n`

/** Below those that are for anybody, which are not learnt. */
async function freePort(from = 21_000): Promise<number> {
  const server = createServer().listen(from, '127.0.0.1')
  const isFree = await once(server, 'listening').then(
    () => true,
    () => false,
  )
  if (!isFree) return freePort(from + 1)
  server.close()
  await once(server, 'close')
  return from
}

describe('a machine behind a sshd on a port of its own', () => {
  let sshd: Program
  let port: number
  beforeAll(async () => {
    // Where the one of Debian locks itself in; it is made by whoever starts it.
    await mkdir('/run/sshd', { recursive: true, mode: 0o755 })
    port = await freePort()
    const config = await sshdConfig(lab.path('sshd'))
    const words = [SSHD, '-D', '-e', '-f', config, '-o', 'ListenAddress=127.0.0.1', '-p', String(port)]
    sshd = start('sh', ['-c', 'exec "$@" 2>&1', 'sh', ...words])
    await sshd.says('Server listening on 127.0.0.1')
    await writeFile(lab.path('ssh_config'), clientConfig())
  })
  afterAll(() => sshd[Symbol.asyncDispose]())

  test('is asked for what it is, and what runs', async () => {
    const from = `ssh://root@127.0.0.1:${port}`
    const running = learnedFile('host', 'learned-running.yaml')
    const ran = await learn(
      'host',
      '--from',
      from,
      '--ssh-config',
      'ssh_config',
      '--kinds',
      'user,package,port',
      '--json',
    )
    expect(ran).toMatchObject({ status: 0, stderr: '' })
    expect(JSON.parse(ran.stdout)).toMatchObject({ name: 'host', from, files: [learnedFile('host'), running] })
    expect(await readFile(learnedFile('host'), 'utf8')).toContain('\n  openssh-server: { installed: true }\n')
    const said = await readFile(running, 'utf8')
    expect(said).toContain('\nwhere: container\n')
    expect(said).toContain(`\n  tcp:${port}: { listening: true }\n`)
  })

  test('that lets nobody in says so', async () => {
    await writeFile(lab.path('other_config'), clientConfig().replace(key, '/nonexistent'))
    const ran = await learn('other', '--from', `ssh://root@127.0.0.1:${port}`, '--ssh-config', 'other_config')
    expect(ran.status).toBe(1)
    expect(ran.stderr).toContain('Permission denied (publickey')
    expect(errorOf(ran)).toMatch(/^ssh -T -o BatchMode=yes .* failed with exit status 255$/)
  })
})

describe('a machine that systemd has booted', () => {
  let container: OpenContainer
  beforeAll(async () => {
    const dir = join(debian, 'opt/sshd')
    const config = await sshdConfig(dir)
    // As it is called inside.
    await writeFile(config, (await readFile(config, 'utf8')).replaceAll(dir, '/opt/sshd'))
    const work = lab.path('work')
    await mkdir(work)
    container = await openContainer(debian, { work, signal, timeout: 5 * MINUTES })
    const proxy = `nsenter --all --target ${container.pid} ${SSHD} -i -f /opt/sshd/sshd_config`
    await writeFile(lab.path('good_config'), clientConfig(`Host good\n  User root\n  ProxyCommand ${proxy}\n`))
  }, 10 * MINUTES)
  afterAll(() => container[Symbol.asyncDispose]())

  test('is learnt from through ssh, and passes what was learnt', async () => {
    const ran = await learn('good', '--from', 'ssh:good', '--ssh-config', 'good_config')
    expect(ran).toMatchObject({ status: 0, stderr: '' })
    const running = await readFile(learnedFile('good', 'learned-running.yaml'), 'utf8')
    expect(running).toMatch(/\n {2}cron: \{ running: true \}\n {2}ssh: \{ running: true \}\n/)
    expect(running).toContain('\n  tcp:22: { listening: true }\n')
    const tests = await readTests(lab.path('site/images/good/tests'), 'tests')
    expect(tests.places).toEqual(['root', 'container'])
    // It is the same system, whichever way one looks at it.
    const checks = tests.checks.map(check => ({ ...check, place: 'container' as const }))
    const results = await runChecks(checks, container, { signal })
    expect(results.filter(({ status }) => status !== 'passed')).toEqual([])
    expect(results.length).toBeGreaterThan(40)
  })
})

describe('what names no system', () => {
  test.each<[from: string, error: string]>([
    ['ssh:-oProxyCommand=touch owned', 'ssh:-oProxyCommand=touch owned names no machine'],
    ['ssh:root@-x', 'ssh:root@-x names no machine'],
    ['ssh:a;reboot', 'ssh:a;reboot names no machine'],
    ['ssh://-oProxyCommand=x', 'ssh://-oProxyCommand=x names no machine'],
    ['ssh:', 'ssh: names no machine'],
    ['image:nothing', 'no image is named nothing'],
    ['', 'say where to look: --from DIR, --from image:NAME or --from ssh:HOST'],
  ])('%s', async (from, error) => {
    expect(errorOf(await learn('x', '--from', from))).toBe(error)
  })

  test('a directory that is not there, or holds no system', async () => {
    expect(errorOf(await learn('x', '--from', 'nowhere'))).toBe(`there is no directory ${lab.path('nowhere')}`)
    expect(errorOf(await learn('x', '--from', 'site'))).toBe(
      'the root has no /bin/sh, and its tests look at it through a shell',
    )
  })

  test('kinds and names that are none', async () => {
    expect(errorOf(await learn('x', '--from', lab.root, '--kinds', 'user,moon'))).toBe(
      'moon is no kind of check to learn: package, service, user, group, file, mount, kernel-param, port',
    )
    expect(errorOf(await learn('../x', '--from', lab.root))).toBe('../x is not the name of an image')
  })
})
