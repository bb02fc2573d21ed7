/** A small Debian, booted as a container: what checks see in it, and what is left of it afterwards. */
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type OpenContainer, openContainer } from '../../src/images/tests/places/container.ts'
import type { SubjectOptions } from '../../src/images/tests/subject.ts'
import { exec } from '../../src/lib/exec.ts'
import { ROOT, start } from '../cli/testing.ts'
import { mountsBelow, processesWith, tinyRoot, writeTree } from './testing.ts'

const MINUTES = 60_000
let dir: string
let tree: string
let works = 0
const signal = new AbortController().signal

const UNIT = (exec: string): string => `[Unit]\nDescription=of a test\n[Service]\nType=oneshot\nExecStart=${exec}\n`

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'muster-container-'))
  tree = join(dir, 'tree')

  await exec('cp', ['-a', '/work/main/var/places/base', tree])
  const units = join(tree, 'etc/systemd/system')
  await writeTree(units, {
    'fails.service': UNIT('/bin/false'),
    'slow.service': UNIT('/bin/sh -c "sleep 2; touch /run/slow"'),
  })
  await mkdir(join(units, 'multi-user.target.wants'), { recursive: true })
  for (const name of ['fails', 'slow'])
    await symlink(`../${name}.service`, join(units, `multi-user.target.wants/${name}.service`))
}, 40 * MINUTES)
afterAll(() => rm(dir, { recursive: true, force: true }))

async function newWork(): Promise<string> {
  const work = join(dir, `work-${works++}`)
  await mkdir(work)
  return work
}

/** Those that the containers of a process have, in every hierarchy of this machine. */
async function cgroupsOf(pid: number): Promise<string[]> {
  const { stdout } = await exec('find', ['/sys/fs/cgroup', '-name', `muster-test-${pid}-*`])
  return stdout
    .toString('utf8')
    .split('\n')
    .filter(line => line !== '')
}

async function nothingLeft(pid = process.pid): Promise<void> {
  // The kernel takes a moment to end what was killed.
  await expect.poll(() => processesWith(dir), { timeout: 30_000 }).toEqual([])
  await expect.poll(() => cgroupsOf(pid), { timeout: 30_000 }).toEqual([])
  expect(await mountsBelow(dir)).toEqual([])
}

const open = async (root: string, timeout = 5 * MINUTES): Promise<OpenContainer> =>
  openContainer(root, { work: await newWork(), signal, timeout })

describe('a booted container', () => {
  let container: OpenContainer
  let work: string
  let console = ''

  beforeAll(async () => {
    work = await newWork()
    const tests = join(dir, 'te:sts')
    await writeTree(tests, { 'check.sh': '#!/bin/sh\necho checked\n' })
    container = await openContainer(tree, {
      work,
      signal,
      tests,
      onConsole: chunk => (console += chunk.toString('latin1')),
    })
  }, 10 * MINUTES)
  afterAll(() => container[Symbol.asyncDispose]())

  async function sh(script: string, options?: SubjectOptions): Promise<[number, string, string]> {
    const { exitCode, stdout, stderr } = await container.run(['sh', '-c', script], { timeout: MINUTES, ...options })
    return [exitCode, stdout.toString('utf8'), stderr.toString('utf8')]
  }

  test('is up when everything has started, also when something of it failed', async () => {
    expect(await sh('test -e /run/slow && systemctl is-system-running')).toEqual([1, 'degraded\n', ''])
    const [, failed] = await sh('systemctl list-units --failed --plain --no-legend')
    expect(failed.split(' ')[0]).toBe('fails.service')
    expect((await sh('systemctl is-active dbus.service systemd-journald.service'))[1]).toBe('active\nactive\n')
  })

  test('has shown its console', () => {
    expect(console).toContain('Welcome to')
    expect(console).toContain('Debian GNU/Linux 12')
  })

  test('runs commands: exit code, two streams, input, environment and directory', async () => {
    expect(await sh('echo out; echo err >&2; exit 3')).toEqual([3, 'out\n', 'err\n'])
    const bytes = Buffer.from([0, 255, 10, 128])
    expect((await container.run(['cat'], { input: bytes })).stdout).toEqual(bytes)
    expect(await sh('echo "$COLOUR $PWD"', { env: { COLOUR: 'a "red" one' }, cwd: '/etc' })).toEqual([
      0,
      'a "red" one /etc\n',
      '',
    ])
    expect((await container.run(['nothing-of-that-name'])).exitCode).toBe(127)
    expect((await sh('kill -KILL $$'))[0]).toBe(137)
  })

  test('gets an environment of its own', async () => {
    expect((await container.run(['env'])).stdout.toString('utf8').trim().split('\n').sort()).toEqual([
      'HOME=/root',
      'LANG=C.UTF-8',
      'LC_ALL=C.UTF-8',
      'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      'TERM=dumb',
    ])
  })

  test('many commands at once', async () => {
    const answers = await Promise.all([1, 2, 3, 4].map(number => sh(`echo ${number}`)))
    expect(answers.map(([, stdout]) => stdout)).toEqual(['1\n', '2\n', '3\n', '4\n'])
  })

  test('a command that takes too long is stopped with all it has started', async () => {
    expect(await sh('echo begun; setsid sleep 86392 & sleep 86392', { timeout: 5000 })).toEqual([124, 'begun\n', ''])
    await expect.poll(() => processesWith('sleep\u000086392'), { timeout: 30_000 }).toEqual([])
  })

  test('what a command leaves running goes on', async () => {
    await sh('sleep 86391 >/dev/null 2>&1 &')
    expect(await processesWith('sleep\u000086391')).toEqual(['sleep 86391'])
  })

  test('shows the tests, which cannot be changed', async () => {
    expect(await sh('/run/muster-tests/check.sh; touch /run/muster-tests/x')).toEqual([
      1,
      'checked\n',
      "touch: cannot touch '/run/muster-tests/x': Read-only file system\n",
    ])
  })

  test('keeps what is written to itself', async () => {
    await sh('echo a >/etc/written')
    expect(await sh('cat /etc/written')).toEqual([0, 'a\n', ''])
    expect(await readdir(join(tree, 'etc'))).not.toContain('written')
  })

  test('has a machine id of its own', async () => {
    const [, own] = await sh('cat /etc/machine-id')
    expect(own).toMatch(/^[0-9a-f]{32}\n$/)
    expect(own).not.toBe(await readFile('/etc/machine-id', 'utf8').catch(() => ''))
  })

  test('has no network but the loopback', async () => {
    expect((await sh("sed -n 's/^ *\\([^ ]*\\):.*/\\1/p' /proc/net/dev"))[1]).toBe('lo\n')
  })

  test('sees none of the processes of this machine', async () => {
    expect((await sh('cat /proc/[0-9]*/cmdline | tr "\\0" " "'))[1]).not.toMatch(/vitest|nspawn/)
    expect(await readFile(`/proc/${container.pid}/status`, 'latin1')).toMatch(/^NSpid:\s+\d+\s+1$/m)
  })

  test('can neither make nor use devices of this machine, nor change its settings', async () => {
    expect((await sh('mknod /tmp/disk b 7 0'))[2]).toContain('Operation not permitted')
    expect((await sh('echo 1 >/proc/sys/vm/swappiness'))[2]).toContain('Read-only file system')
    const devices = (await sh('ls /dev'))[1].trim().split('\n')
    expect(devices.filter(name => /^(sd|vd|nvme|loop|dm-|mem|kvm|fuse)/.test(name))).toEqual([])
    const capabilities = async (pid: string): Promise<string> =>
      (await sh(`sed -n 's/^CapBnd:\\s*//p' /proc/${pid}/status`))[1]
    expect(await capabilities('self')).toBe(await capabilities('1'))
    // No CAP_SYS_MODULE, no CAP_SYS_TIME, no CAP_MKNOD.
    const bits = BigInt(`0x${(await capabilities('self')).trim()}`)
    expect([16n, 25n, 27n].map(bit => (bits >> bit) & 1n)).toEqual([0n, 0n, 0n])
  })

  test('leaves no process, mount, cgroup or file behind', async () => {
    expect(await cgroupsOf(process.pid)).not.toEqual([])
    await container[Symbol.asyncDispose]()
    await nothingLeft()
    expect(await processesWith('sleep\u000086391')).toEqual([])
    expect(await readdir(work)).toEqual([])
    expect(await readdir(join(tree, 'etc'))).not.toContain('written')
  })
})

describe('an end', () => {
  afterEach(() => nothingLeft())

  test('of the container itself is told to who asks it', async () => {
    await using container = await open(tree)
    await container.run(['systemctl', 'poweroff', '--force', '--force'], { timeout: MINUTES }).catch(() => {})
    await expect
      .poll(() => container.run(['true']).catch((error: Error) => error.message), { timeout: MINUTES })
      .toBe('the container has ended')
  })

  test('of its user ends its commands', async () => {
    const container = await open(tree)
    const answer = container.run(['sleep', '86390'], { timeout: 60 * MINUTES })
    const refused = answer.catch((error: unknown) => error)
    await container[Symbol.asyncDispose]()
    expect(await refused).toMatchObject({ name: 'AbortError' })
  })

  test('by an interruption while it starts', async () => {
    const controller = new AbortController()
    const opening = openContainer(tree, {
      work: await newWork(),
      signal: controller.signal,
      onConsole: () => controller.abort(),
    })
    await expect(opening).rejects.toMatchObject({ name: 'AbortError' })
  })

  test.each(['SIGKILL', 'SIGTERM', 'SIGINT'] as const)('of ours by %s takes everything with it', async name => {
    const script = join(dir, 'hold.ts')
    await writeFile(
      script,
      `import { openContainer } from '${ROOT}/src/images/tests/places/container.ts'
const [tree = '', work = ''] = process.argv.slice(2)
const container = await openContainer(tree, { work, signal: new AbortController().signal })
const answer = container.run(['sh', '-c', 'echo >/run/held; sleep 86389'], { timeout: 3_600_000 })
while ((await container.run(['test', '-e', '/run/held'])).exitCode !== 0);
process.stdout.write('up')
await answer
`,
    )
    await using program = start(process.execPath, [script, tree, await newWork()])
    await program.says('up')
    const ended = once(program.child, 'exit')
    program.child.kill(name)
    await ended
    await nothingLeft(program.child.pid)
    expect(await processesWith('sleep\u000086389')).toEqual([])
  })
})

describe('a tree that does not boot', () => {
  afterEach(() => nothingLeft())
  test('because it has no init', async () => {
    await expect(open(await tinyRoot(join(dir, 'without')))).rejects.toMatchObject({
      code: 'IMAGE_INCOMPLETE',
      message: 'the root has no init, so it cannot be booted as a container',
    })
  })

  test('because its init ends', async () => {
    const root = await tinyRoot(join(dir, 'ending'), { 'sbin/init': '#!/bin/sh\necho no disk >/dev/console\nexit 1\n' })
    // It says that it runs, and is gone, maybe not at once.
    const useIt = async (): Promise<void> => {
      await using container = await open(root)
      while (true) await container.run(['true'])
    }
    await expect(useIt()).rejects.toMatchObject({
      code: 'EXEC_FAILED',
      message: expect.stringMatching(/^the container (has )?ended/),
    })
  })

  test('because its init is no program: the end of the console says why', async () => {
    const root = await tinyRoot(join(dir, 'broken'), { 'usr/lib/systemd/systemd': '#!/nowhere\n' })
    await expect(open(root)).rejects.toMatchObject({
      code: 'EXEC_FAILED',
      message: 'the container ended while it started',
      details: expect.arrayContaining([expect.stringContaining('/usr/lib/systemd/systemd')]),
    })
  })

  test('because it takes too long', async () => {
    const root = await tinyRoot(join(dir, 'waiting'), {
      'usr/lib/systemd/systemd': '#!/bin/sh\necho waiting\nsleep 86388\n',
    })
    await expect(open(root, 5000)).rejects.toMatchObject({
      code: 'EXEC_FAILED',
      message: 'the container was not up after 5 s',
      details: expect.arrayContaining(['waiting']),
    })
  })
})

test('a tree with another init than systemd is up when that runs', async () => {
  const init = '#!/bin/sh\necho started >/run/started\nexec sleep 86387\n'
  const root = await tinyRoot(join(dir, 'other'), { 'sbin/init': init, 'etc/machine-id': '' })
  await using container = await open(root)
  await expect
    .poll(async () => (await container.run(['cat', '/run/started'])).stdout.toString('utf8'), { timeout: MINUTES })
    .toBe('started\n')
  expect((await container.run(['readlink', '/proc/1/exe'])).stdout.toString('utf8')).toBe('/bin/busybox\n')
})
