import { readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { exists } from '../../../lib/dirs.ts'
import { exec } from '../../../lib/exec.ts'
import { directoryOf, temporaryDir } from '../../../site/testing.ts'
import type { OpenSubject, SubjectOptions } from '../subject.ts'
import { type RootOptions, openRoot } from './root.ts'
import { busyboxRoot } from './testing.ts'

let tree: string
let work: string

beforeEach(async () => {
  tree = await busyboxRoot(await temporaryDir())
  work = await temporaryDir()
})

async function open(options: Partial<RootOptions> = {}): Promise<OpenSubject> {
  const subject = await openRoot(tree, { work, signal: new AbortController().signal, ...options })
  onTestFinished(() => subject[Symbol.asyncDispose]())
  return subject
}

/** Exit code, standard output and standard error of a shell's script. */
async function sh(subject: OpenSubject, script: string, options?: SubjectOptions): Promise<[number, string, string]> {
  const { exitCode, stdout, stderr } = await subject.run(['sh', '-c', script], options)
  return [exitCode, stdout.toString('utf8'), stderr.toString('utf8')]
}

async function processes(): Promise<string> {
  const { stdout } = await exec('sh', ['-c', 'cat /proc/[0-9]*/cmdline 2>/dev/null | tr "\\0" " " || :'])
  return stdout.toString('latin1')
}

describe('a command', () => {
  test('has an exit code and two streams', async () => {
    expect(await sh(await open(), 'echo out; echo err >&2; exit 3')).toEqual([3, 'out\n', 'err\n'])
  })

  test('needs no shell', async () => {
    const { stdout } = await (await open()).run(['echo', '$HOME;', '"a  b"'])
    expect(stdout.toString('utf8')).toBe('$HOME; "a  b"\n')
  })

  test('gets what it is given on standard input, bytes as well, and nothing otherwise', async () => {
    const subject = await open()
    const bytes = Buffer.from([0, 255, 10, 128])
    expect((await subject.run(['cat'], { input: bytes })).stdout).toEqual(bytes)
    expect((await subject.run(['cat'], { input: 'ä' })).stdout.toString('utf8')).toBe('ä')
    expect((await subject.run(['cat'])).stdout).toEqual(Buffer.alloc(0))
  })

  test('gets an environment and a directory', async () => {
    expect(await sh(await open(), 'echo "$COLOUR $PWD"', { env: { COLOUR: 'a "red" one' }, cwd: '/etc' })).toEqual([
      0,
      'a "red" one /etc\n',
      '',
    ])
  })

  test.each([
    ['is not there', ['nothing-of-that-name']],
    ['cannot be run', ['/etc']],
  ])('that %s says so with a code above 125', async (_, argv) => {
    const { exitCode, stderr } = await (await open()).run(argv)
    expect([126, 127]).toContain(exitCode)
    expect(stderr.toString('utf8')).toContain(argv[0])
  })

  test('in a directory that is not there fails and says so', async () => {
    const [exitCode, , stderr] = await sh(await open(), 'echo here', { cwd: '/nowhere' })
    expect(exitCode).not.toBe(0)
    expect(stderr).toContain('/nowhere')
  })

  test('ended by a signal has 128 and its number', async () => {
    expect((await sh(await open(), 'kill -SEGV $$'))[0]).toBe(139)
  })

  test('that takes too long is stopped with all it has started, and what it said is kept', async () => {
    const script = 'echo begun; echo waiting >&2; sleep 86397 & setsid sleep 86397 & sleep 86397'
    expect(await sh(await open(), script, { timeout: 5000 })).toEqual([124, 'begun\n', 'waiting\n'])
    await expect.poll(processes, { timeout: 20_000 }).not.toContain('sleep 86397 ')
  })

  test('may say as much as it likes: the beginning is kept', async () => {
    const script = 'yes | head -c 9000000; yes n | head -c 9000000 >&2; echo done >/etc/done'
    const subject = await open()
    const { stdout, stderr } = await subject.run(['sh', '-c', script.replaceAll('head', '/bin/busybox head')], {
      timeout: 60_000,
    })
    expect([stdout.length, stderr.length]).toEqual([1024 * 1024, 1024 * 1024])
    expect(await sh(subject, 'cat /etc/done')).toEqual([0, 'done\n', ''])
    expect(await sh(subject, 'echo 12345; echo 6789 >&2', { keep: 3 })).toEqual([0, '123', '678'])
  })
})

describe('the root', () => {
  test('never changes, though commands find what others wrote', async () => {
    const subject = await open()
    await sh(subject, 'echo new >/etc/new; rm -f /bin/yes; /bin/busybox rm -f /bin/yes')
    expect(await sh(subject, 'cat /etc/new; test -e /bin/yes || echo gone')).toEqual([0, 'new\ngone\n', ''])
    expect(await readdir(join(tree, 'etc'))).toEqual([])
    expect(await readdir(join(tree, 'bin'))).toContain('yes')
  })

  test('may be asked many things at once', async () => {
    const subject = await open()
    const answers = await Promise.all(
      [1, 2, 3, 4].map(number => sh(subject, `echo ${number} >>/etc/n; echo ${number}`)),
    )
    expect(answers.map(([, stdout]) => stdout)).toEqual(['1\n', '2\n', '3\n', '4\n'])
    expect(await sh(subject, 'cat /etc/n')).toEqual([0, '1\n2\n3\n4\n', ''])
  })

  test('shows the folder of the tests, which cannot be changed', async () => {
    const tests = await directoryOf({ 'a.yaml': 'x' })
    const subject = await open({ tests })
    expect(await sh(subject, 'cd /run/muster-tests && ls && echo y >a.yaml')).toEqual([
      1,
      'a.yaml\n',
      "sh: can't create a.yaml: Read-only file system\n",
    ])
  })

  test('leaves nothing in its work directory', async () => {
    const subject = await open()
    await sh(subject, 'echo new >/etc/new')
    await subject[Symbol.asyncDispose]()
    expect(await readdir(work)).toEqual([])
  })
})

test('a root without a shell is refused', async () => {
  await rm(join(tree, 'bin/sh'))
  await expect(open()).rejects.toMatchObject({
    code: 'IMAGE_INCOMPLETE',
    message: 'the root has no /bin/sh, and its tests look at it through a shell',
  })
})

test('a root whose shell does not start is refused, with what was said', async () => {
  await rm(join(tree, 'bin/sh'))
  await writeFile(join(tree, 'bin/sh'), 'not a program', { mode: 0o755 })
  await expect(open()).rejects.toMatchObject({
    code: 'EXEC_FAILED',
    message: 'nothing can be run in the root: its shell does not start',
    details: ['bwrap: execvp /bin/sh: Exec format error'],
  })
})

test('who is interrupted gets no answer', async () => {
  const controller = new AbortController()
  const subject = await open({ signal: controller.signal })
  const answer = sh(subject, 'echo >/etc/begun; sleep 86396', { timeout: 600_000 })
  await expect.poll(() => exists(join(work, 'upper/etc/begun')), { timeout: 60_000 }).toBe(true)
  controller.abort()
  await expect(answer).rejects.toMatchObject({ name: 'AbortError' })
})
