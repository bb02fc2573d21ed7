import { chmod, copyFile, mkdir, readFile, readdir, stat, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { MusterError } from '../../lib/errors.ts'
import { type ExecResult, exec } from '../../lib/exec.ts'
import { directoryOf, temporaryDir, writeFiles } from '../../site/testing.ts'
import { type Overlay, inRoot, makeMountPoints, withTool } from './sandbox.ts'

/** A root of one static program. */
async function busyboxRoot(dir: string): Promise<string> {
  await mkdir(join(dir, 'bin'), { recursive: true })
  await chmod(dir, 0o755)
  await copyFile('/usr/bin/busybox', join(dir, 'bin/busybox'))
  for (const name of ['cat', 'env', 'id', 'ls', 'mount', 'sh', 'sleep'])
    await symlink('busybox', join(dir, 'bin', name))
  return dir
}

/** A tree of layers in the way builds keep them: LAYERS/KEY/root. */
async function overlayOf(
  more: readonly Readonly<Record<string, string>>[],
  writable = true,
): Promise<Required<Overlay> | Overlay> {
  const dir = await temporaryDir()
  const layers = [await busyboxRoot(join(dir, 'layers/0/root'))]
  for (const [at, files] of more.entries()) {
    const root = join(dir, 'layers', String(at + 1), 'root')
    await mkdir(root, { recursive: true })
    await writeFiles(root, files)
    layers.push(root)
  }
  const [mountPoint, upper, work] = ['root', 'upper', 'work'].map(name => join(dir, name)) as [string, string, string]
  for (const path of [mountPoint, upper, work]) await mkdir(path)
  return writable ? { layers, upper, work, mountPoint } : { layers, mountPoint }
}

const root = async (): Promise<string> => busyboxRoot(await temporaryDir())
const sh = (script: string): string[] => ['sh', '-c', script]
const said = async (result: Promise<ExecResult>): Promise<string> => (await result).stdout.toString('utf8')
const lines = async (result: Promise<ExecResult>): Promise<string[]> => (await said(result)).trimEnd().split('\n')

async function failureOf(work: Promise<unknown>): Promise<MusterError> {
  const error: unknown = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (error instanceof MusterError) return error
  throw new Error(`no failure of ours: ${String(error)}`)
}

describe('in a root', () => {
  test('the tree is everything there is, with what a running system has besides', async () => {
    expect(await lines(inRoot(await root(), ['ls', '/']))).toEqual(['bin', 'dev', 'proc', 'run', 'tmp'])
  })

  test('nothing of this machine is seen', async () => {
    const outside = await directoryOf({ secret: 'mine' })
    expect(await said(inRoot(await root(), sh(`cat ${outside}/secret /etc/passwd 2>/dev/null || echo none`)))).toBe(
      'none\n',
    )
  })

  test('/tmp is for everybody, and neither it nor /run leaves anything behind', async () => {
    const dir = await root()
    expect(await said(inRoot(dir, sh('stat -c %a /tmp; touch /tmp/a /run/b; ls /tmp /run')))).toBe(
      '1777\n/run:\nb\n\n/tmp:\na\n',
    )
    expect([...(await readdir(join(dir, 'tmp'))), ...(await readdir(join(dir, 'run')))]).toEqual([])
  })

  test('devices are those every program needs', async () => {
    expect(
      await said(
        inRoot(
          await root(),
          sh(
            'echo gone > /dev/null; head -c 2 /dev/zero | od -An -tx1; ls /dev/vda /dev/sda /dev/mem 2>/dev/null | wc -l',
          ),
        ),
      ),
    ).toBe(' 00 00\n0\n')
  })

  test('what is written to a directory is written there', async () => {
    const dir = await root()
    await inRoot(dir, sh('echo hello > /file; mkdir /etc; chown 12:34 /file'))
    expect(await readFile(join(dir, 'file'), 'utf8')).toBe('hello\n')
  })
})

describe('a tree of layers', () => {
  test('is seen as one', async () => {
    const overlay = await overlayOf([
      { a: '1', b: '1' },
      { b: '2', 'c/d': '2' },
    ])
    expect(await said(inRoot(overlay, sh('cat /a /b /c/d')))).toBe('122')
  })

  test('changes go to the uppermost, and the others stay as they were', async () => {
    const overlay = await overlayOf([{ keep: '1', change: '1', remove: '1' }])
    await inRoot(overlay, sh('echo 2 > /change; rm /remove; echo 3 > /new'))
    const [lower, upper] = [overlay.layers[1] ?? '', overlay.upper ?? '']
    expect((await readdir(lower)).sort()).toEqual(['change', 'keep', 'remove'])
    expect(await readFile(join(lower, 'change'), 'utf8')).toBe('1')
    // With the mount points of the sandbox; 'remove' is the note that it is gone.
    expect((await readdir(upper)).sort()).toEqual(['change', 'dev', 'new', 'proc', 'remove', 'run', 'tmp'])
    expect(await readFile(join(upper, 'change'), 'utf8')).toBe('2\n')
  })

  test('without an uppermost nothing can be changed', async () => {
    const overlay = await overlayOf([{ a: '1', 'dev/x': '', 'proc/x': '', 'run/x': '', 'tmp/x': '' }], false)
    const tried = sh('cat /a; echo 2 > /a || rm /a || touch /b || echo no')
    expect(await said(inRoot(overlay, tried))).toBe('1no\n')
    expect(await readFile(join(overlay.layers[1] ?? '', 'a'), 'utf8')).toBe('1')
  })

  test('may have a hundred layers', async () => {
    const overlay = await overlayOf(Array.from({ length: 100 }, (_, at) => ({ [`f${at}`]: '', last: String(at) })))
    expect(await said(inRoot(overlay, sh('ls / | grep -c "^f"; cat /last')))).toBe('100\n99')
  })

  test('is mounted for nobody else to see, not even meanwhile', async () => {
    const overlay = await overlayOf([{ a: '1' }])
    const seen: Promise<string[]>[] = []
    await inRoot(overlay, sh('echo running; ls /'), { onOutput: () => void seen.push(readdir(overlay.mountPoint)) })
    expect(seen.length).toBeGreaterThan(0)
    for (const names of await Promise.all(seen)) expect(names).toEqual([])
    expect(await readFile('/proc/self/mounts', 'utf8')).not.toContain(overlay.mountPoint)
    expect(await readdir(overlay.mountPoint)).toEqual([])
  })
})

describe('the environment', () => {
  const USUAL = [
    'HOME=/root',
    'LANG=C.UTF-8',
    'LC_ALL=C.UTF-8',
    'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    'PWD=/',
    'TERM=dumb',
  ]

  test('is always the same: none of ours gets in', async () => {
    vi.stubEnv('MUSTER_TOKEN', 'secret')
    vi.stubEnv('LD_PRELOAD_OF_TESTS', 'x')
    onTestFinished(() => void vi.unstubAllEnvs())
    expect((await lines(inRoot(await root(), ['env']))).sort()).toEqual(USUAL)
    expect((await lines(withTool(undefined, ['env']))).sort()).toEqual(USUAL)
  })

  test('with what is added to it', async () => {
    const env = { SOURCE_DATE_EPOCH: '1', LANG: 'de_DE', ODD: "a b'\n$c" }
    const seen = await said(inRoot(await root(), sh('echo "$SOURCE_DATE_EPOCH|$LANG|$ODD|$HOME"'), { env }))
    expect(seen).toBe("1|de_DE|a b'\n$c|/root\n")
  })

  test('the machine is called build, and only its own processes are seen', async () => {
    expect(await said(inRoot(await root(), sh('hostname; ls /proc | grep -c "^[0-9]"; echo $$')))).toMatch(
      /^build\n\d\n\d\n$/,
    )
  })

  test('there is no terminal to type into: it is a session of its own', async () => {
    // The session, field 6 of stat, would be 0 if it were one outside.
    expect(Number(await said(inRoot(await root(), sh('cut -d " " -f 6 /proc/self/stat'))))).toBeGreaterThan(0)
  })

  test('the directory it starts in', async () => {
    expect(await said(inRoot(await root(), sh('pwd')))).toBe('/\n')
    expect(await said(inRoot(await root(), sh('pwd'), { cwd: '/bin' }))).toBe('/bin\n')
  })
})

async function serve(): Promise<string> {
  const server = createServer((_, reply) => reply.end('reached'))
  await new Promise<void>(resolve => void server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}
const ask = (url: string): string[] =>
  sh(`wget -q -O - ${url} 2>/dev/null || echo unreachable; tail -n +3 /proc/net/dev | cut -d: -f1`)

describe('the network', () => {
  test('is off: there is not even a way to this machine', async () => {
    const url = await serve()
    expect((await lines(inRoot(await root(), ask(url)))).map(line => line.trim())).toEqual(['unreachable', 'lo'])
    expect(await said(withTool(undefined, sh(`curl -s ${url} || echo unreachable`)))).toBe('unreachable\n')
  })

  test('is there when it is said', async () => {
    const url = await serve()
    expect((await said(inRoot(await root(), ask(url), { network: true }))).startsWith('reached')).toBe(true)
    expect(await said(withTool(undefined, ['curl', '-s', url], { network: true }))).toBe('reached')
  })
})

// Numbers of <linux/capability.h>: chown, dac_override, fowner, fsetid, kill, setgid, setuid, setpcap, sys_chroot,
// audit_write, setfcap.
const CAPABILITIES = [0, 1, 3, 4, 5, 6, 7, 8, 18, 29, 31]
const MKNOD = 27
const mask = (...bits: number[]): string =>
  bits
    .reduce((sum, bit) => sum + 2 ** bit, 0)
    .toString(16)
    .padStart(16, '0')

describe('what root may do', () => {
  const STATUS = sh("grep -E '^(Cap(Prm|Eff)|NoNewPrivs)' /proc/self/status")

  test.each<readonly [string, (dir: string) => Promise<ExecResult>, string]>([
    ['in a root', dir => inRoot(dir, STATUS), mask(...CAPABILITIES, MKNOD)],
    ['a tool that unpacks', dir => withTool(dir, STATUS), mask(...CAPABILITIES, MKNOD)],
    ['a tool that runs scripts', dir => withTool(dir, STATUS, { live: true }), mask(...CAPABILITIES)],
  ])('what the scripts of packages need, and no more, whatever they execute: %s', async (_, status, usual) => {
    expect(await lines(status(await root()))).toEqual([`CapPrm:\t${usual}`, `CapEff:\t${usual}`, 'NoNewPrivs:\t1'])
  })

  test('the settings of the kernel can be read and not changed', async () => {
    const script = sh(
      'cat /proc/sys/kernel/ostype; echo x > /proc/sys/kernel/hostname || echo x > /proc/sysrq-trigger || echo no',
    )
    expect(await said(inRoot(await root(), script))).toBe('Linux\nno\n')
    expect(await said(withTool(undefined, script))).toBe('Linux\nno\n')
  })

  test('not even its own name can be changed', async () => {
    expect((await failureOf(inRoot(await root(), sh('hostname other')))).details.join('\n')).toMatch(/not permitted/)
  })

  test('nothing can be mounted', async () => {
    expect((await failureOf(inRoot(await root(), ['mount', '-t', 'tmpfs', 'none', '/bin']))).message).toMatch(
      /failed with exit status/,
    )
  })

  test('devices can be made, as packages bring them, but not used', async () => {
    const disk = sh('mknod /null c 1 3 && test -c /null && echo made; cat /null 2>/dev/null || echo unusable')
    expect(await said(inRoot(await root(), disk))).toBe('made\nunusable\n')
    expect(await said(inRoot(await overlayOf([]), disk))).toBe('made\nunusable\n')
  })
})

describe('with a tool of this machine', () => {
  test('its programs are seen, and nothing else of it', async () => {
    const outside = await directoryOf({ secret: 'mine' })
    const script = `ls /; cat ${outside}/secret 2>/dev/null; ls -A /root /var/tmp /tmp /run | grep -v : | tr -d '\\n'`
    expect(await lines(withTool(undefined, sh(script)))).toEqual(
      'bin dev etc lib lib64 proc root run sbin tmp usr var'.split(' '),
    )
  })

  test('of its settings what programs need; neither its users nor its secrets', async () => {
    const script =
      'cat /etc/passwd; ls /etc/shadow /etc/ssh /etc/ssl/private /etc/sudoers /etc/hosts 2>/dev/null || echo none'
    expect(await said(withTool(undefined, sh(script)))).toMatch(/^root:x:0:0:root:\/root:\/bin\/sh\n(.*\n)*none\n$/)
    expect(await said(withTool(undefined, sh('cat /etc/hosts'), { network: true }))).toBe(
      await readFile('/etc/hosts', 'utf8'),
    )
  })

  test('nothing of it can be changed', async () => {
    const script =
      'for f in /usr/x /etc/passwd /etc/ld.so.cache; do (: >> $f) 2>/dev/null && echo changed $f; done; echo done'
    expect(await said(withTool(undefined, sh(script)))).toBe('done\n')
  })

  test('a directory is the target', async () => {
    const dir = await directoryOf({ a: '1' })
    expect(await said(withTool(dir, sh('cat /target/a; echo 2 > /target/b')))).toBe('1')
    expect(await readFile(join(dir, 'b'), 'utf8')).toBe('2\n')
  })

  test('a tree of layers is the target', async () => {
    const overlay = await overlayOf([{ a: '1' }])
    expect(await said(withTool(overlay, sh('cat /target/a; echo 2 > /target/b; ls /target')))).toBe('1a\nb\nbin\n')
    expect(await readdir(overlay.upper ?? '')).toEqual(['b'])
  })

  test('a live target has what a running system has', async () => {
    const dir = await root()
    const script =
      'ls /dev; test -e /proc/self/status && echo proc; stat -c %a /tmp; echo x > /dev/null; touch /tmp/a /run/b'
    expect(await lines(withTool(dir, ['chroot', '/target', 'sh', '-c', script], { live: true }))).toEqual([
      ...'full null random tty urandom zero'.split(' '),
      'proc',
      '1777',
    ])
    expect([...(await readdir(join(dir, 'tmp'))), ...(await readdir(join(dir, 'run')))]).toEqual([])
  })
})

test('an empty directory that is to be a live target has the right places for it, whatever the umask', async () => {
  const dir = await temporaryDir()
  const umask = process.umask(0o077)
  try {
    await makeMountPoints(dir)
  } finally {
    process.umask(umask)
  }
  const modes = await Promise.all(
    (await readdir(dir))
      .sort()
      .map(async name => `${name} ${((await stat(join(dir, name))).mode & 0o7777).toString(8)}`),
  )
  expect(modes).toEqual(['dev 755', 'proc 755', 'run 755', 'tmp 1777'])
})

describe('files from outside', () => {
  test('can be read, or written too', async () => {
    const dir = await directoryOf({ 'in/a': '1', 'out/b': '2' })
    const options = { readable: { '/run/in': join(dir, 'in') }, writable: { '/run/out': join(dir, 'out') } }
    const script = 'cat /run/in/a /run/out/b; echo 3 > /run/out/c; touch /run/in/d 2>/dev/null || echo read-only'
    expect(await said(inRoot(await root(), sh(script), options))).toBe('12read-only\n')
    expect((await readdir(join(dir, 'out'))).sort()).toEqual(['b', 'c'])
    expect(await said(withTool(undefined, sh(script), options))).toBe('12read-only\n')
  })

  test('a single file', async () => {
    const dir = await directoryOf({ a: '1' })
    const readable = { '/run/muster/a': join(dir, 'a') }
    expect(
      await said(inRoot(await root(), sh('cat /run/muster/a; echo 2 > /run/muster/a || echo no'), { readable })),
    ).toBe('1no\n')
  })
})

describe('how it ends', () => {
  test('what it gets', async () => {
    expect(await said(inRoot(await root(), ['cat'], { input: 'hello' }))).toBe('hello')
    // Nobody is there to answer.
    expect(await said(inRoot(await root(), ['cat']))).toBe('')
  })

  test('what it says, in the order it says it', async () => {
    let seen = ''
    const script = 'for n in 1 2 3 4 5; do echo out$n; echo err$n >&2; done'
    await inRoot(await overlayOf([]), sh(script), { onOutput: chunk => (seen += chunk.toString('utf8')) })
    expect(seen).toBe('out1\nerr1\nout2\nerr2\nout3\nerr3\nout4\nerr4\nout5\nerr5\n')
  })

  test('an exit status that is an answer', async () => {
    expect((await inRoot(await root(), sh('exit 3'), { allow: [3] })).exitCode).toBe(3)
  })

  test('a failure tells of the command, not of the walls around it', async () => {
    const error = await failureOf(inRoot(await overlayOf([]), sh('echo "no: space" >&2; exit 3')))
    expect([error.code, error.message, error.details, error.hint]).toEqual([
      'EXEC_FAILED',
      `sh -c 'echo "no: space" >&2; exit 3': failed with exit status 3`,
      ['no: space'],
      '',
    ])
  })

  test('a long command is shown in part', async () => {
    const { message } = await failureOf(inRoot(await root(), sh(`exit 3; ${'#'.repeat(500)}`)))
    expect(message).toMatch(/^sh -c 'exit 3; #+ …: failed with exit status 3$/)
    expect(message.length).toBeLessThan(220)
  })

  test('a command that is not there', async () => {
    const error = await failureOf(inRoot(await root(), ['no-such-tool']))
    expect(error.details.join('\n')).toMatch(/no-such-tool.*No such file/)
  })

  test('a tree that cannot be mounted', async () => {
    const dir = await temporaryDir()
    await mkdir(join(dir, 'root'))
    const overlay = { layers: [join(dir, 'layers/none/root')], mountPoint: join(dir, 'root') }
    expect((await failureOf(inRoot(overlay, ['true']))).code).toBe('EXEC_FAILED')
  })
})

/** A pipe that says 'ready', and ends when the last process that has it open is gone. */
async function lifeline(): Promise<{ readonly dir: string; readonly fifo: string }> {
  const dir = await temporaryDir()
  await exec('mkfifo', [join(dir, 'fifo')])
  return { dir, fifo: join(dir, 'fifo') }
}
const HOLD = 'exec 3> /run/life/fifo; echo ready >&3; sleep 300 & sleep 300'

describe('it does not outlive us', () => {
  test('when nobody waits for it any more', async () => {
    const { dir, fifo } = await lifeline()
    const controller = new AbortController()
    const work = failureOf(
      inRoot(await overlayOf([]), sh(HOLD), { writable: { '/run/life': dir }, signal: controller.signal }),
    )
    // Ends only when both sleeps are gone.
    await exec('cat', [fifo], { onOutput: () => controller.abort() })
    expect((await work).message).toMatch(/: was ended by SIGTERM$/)
  })

  test.each<readonly [string, (dir: string) => Promise<unknown>]>([
    ['in a root', async dir => [await root(), sh(HOLD), { writable: { '/run/life': dir } }]],
    ['in a tree of layers', async dir => [await overlayOf([]), sh(HOLD), { writable: { '/run/life': dir } }]],
  ])('when we are killed: %s', async (_, argumentsIn) => {
    const { dir, fifo } = await lifeline()
    const args = join(dir, 'args.json')
    await writeFile(args, JSON.stringify(await argumentsIn(dir)))
    // A process of ours that runs something in a sandbox, and is not asked before it ends.
    const code = `
      import { readFileSync } from 'node:fs'
      import { inRoot } from ${JSON.stringify(new URL('sandbox.ts', import.meta.url).href)}
      const [target, argv, options] = JSON.parse(readFileSync(process.argv[1], 'utf8'))
      process.stdout.write(String(process.pid))
      await inRoot(target, argv, options)`
    let pid = ''
    const parent = failureOf(
      exec(process.execPath, ['--input-type=module', '--eval', code, args], {
        onOutput: chunk => (pid += chunk.toString('utf8')),
      }),
    )
    await exec('cat', [fifo], { onOutput: () => void process.kill(Number(pid), 'SIGKILL') })
    expect((await parent).message).toMatch(/: was ended by SIGKILL$/)
  })
})
