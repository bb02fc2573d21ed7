import { once } from 'node:events'
import { mkdir, mkdtemp, rm, symlink } from 'node:fs/promises'
import { type Server, type Socket, connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { exists } from '../../lib/dirs.ts'
import { exec } from '../../lib/exec.ts'
import { type Program, startProgram } from '../../lib/program.ts'
import { SerialShell, type ShellOptions } from './shell.ts'

/** A shell on a terminal, at the other end of a connection: all that a machine with a serial port is to us. */
let dir: string
let line: Socket
let closers: (() => unknown)[]
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'muster-shell-'))
  closers = []
})
afterEach(async () => {
  for (const close of closers.reverse()) await close()
  await rm(dir, { recursive: true, force: true })
})

const never = new AbortController().signal

async function listening(): Promise<{ server: Server; port: number }> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closers.push(() => server.close())
  const address = server.address()
  return { server, port: typeof address === 'object' && address !== null ? address.port : 0 }
}

/** `command` on a new terminal. */
async function terminal(command: string, env: Record<string, string> = {}): Promise<Program> {
  const { server, port } = await listening()
  const connected = once(server, 'connection') as Promise<[Socket]>
  const words = ['script', '--quiet', '--echo', 'always', '--command', command, '/dev/null']
  const program = await startProgram('busybox', ['nc', '127.0.0.1', String(port), '-e', ...words], { env })
  ;[line] = await connected
  line.on('error', () => {})
  closers.push(
    () => program.ended,
    () => program.signal('SIGKILL'),
    () => line.destroy(),
  )
  return program
}

async function opened(command = 'bash -i', options: Partial<ShellOptions> = {}): Promise<SerialShell> {
  await terminal(command)
  const shell = new SerialShell(line, { signal: never, ...options })
  await shell.open()
  return shell
}

/** Says the same whatever it is told. */
async function answering(words: string): Promise<SerialShell> {
  const { server, port } = await listening()
  const peer = connect(port, '127.0.0.1')
  ;[line] = (await once(server, 'connection')) as [Socket]
  closers.push(
    () => peer.destroy(),
    () => line.destroy(),
  )
  const shell = new SerialShell(line, { signal: never, patience: 2000 })
  peer.write('login: ')
  peer.once('data', () => peer.write(`the echo of that\r\nlogin: muster-trial-ready\n${words}`))
  await shell.open()
  return shell
}

const text = ({ exitCode, stdout, stderr }: Awaited<ReturnType<SerialShell['run']>>): string =>
  `${exitCode} ${stdout.toString('utf8')}|${stderr.toString('utf8')}`

describe.each(['bash -i', 'sh -i', 'busybox sh -i'])('a terminal with %s', interactive => {
  test('runs one command after another: exit code, both streams', async () => {
    const shell = await opened(interactive)
    expect(text(await shell.run(['sh', '-c', 'echo out; echo err >&2; exit 3']))).toBe('3 out\n|err\n')
    const several = ['one', 'two', 'three'].map(word => shell.run(['echo', word]))
    expect((await Promise.all(several)).map(text)).toEqual(['0 one\n|', '0 two\n|', '0 three\n|'])
  })
})

test('nothing of the line is seen by a command: environment, directory, terminal and input are its own', async () => {
  const shell = await opened()
  expect((await shell.run(['env'])).stdout.toString('utf8').split('\n').sort()).toEqual([
    '',
    'HOME=/root',
    'LANG=C.UTF-8',
    'LC_ALL=C.UTF-8',
    'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    'TERM=dumb',
  ])
  expect(text(await shell.run(['pwd']))).toBe('0 /\n|')
  expect(text(await shell.run(['sh', '-c', 'pwd; echo "$A"'], { cwd: '/usr/lib', env: { A: "it's $HOME" } }))).toBe(
    "0 /usr/lib\nit's $HOME\n|",
  )
  expect(text(await shell.run(['cat']))).toBe('0 |')
  expect((await shell.run(['sh', '-c', 'echo typed >/dev/tty'])).exitCode).not.toBe(0)
  expect(text(await shell.run(['sh', '-c', 'kill -INT $$; echo not interrupted']))).toBe('130 |')
  expect(text(await shell.run(['sh', '-c', 'umask']))).toBe('0 0022\n|')
})

test('words stay as they are', async () => {
  const shell = await opened()
  const words = ["it's", '"$(id)"', 'a b\tc', 'zwei\nZeilen', '!!', '', '\\', 'ä☃', '-n', '*']
  const { stdout } = await shell.run(['printf', '%s|', ...words])
  expect(stdout.toString('utf8')).toBe(words.map(word => `${word}|`).join(''))
  expect(text(await shell.run(['echo', 'a\0b']))).toBe('127 |no command has a NUL in it\n')
})

test('every byte goes in and comes out, more than the buffers of a terminal hold', async () => {
  const shell = await opened()
  const bytes = Buffer.from(Array.from({ length: 300_001 }, (_, at) => (at * 7 + (at >> 8)) % 256))
  const { exitCode, stdout, stderr } = await shell.run(['sh', '-c', 'tee /dev/stderr'], { input: bytes })
  expect(exitCode).toBe(0)
  expect(stdout.equals(bytes)).toBe(true)
  expect(stderr.equals(bytes)).toBe(true)
})

test('what is not there ends with 127, a directory that is not there with an error', async () => {
  const shell = await opened()
  expect((await shell.run(['no-such-program'])).exitCode).toBe(127)
  const { exitCode, stderr } = await shell.run(['true'], { cwd: '/no/such' })
  expect(exitCode).not.toBe(0)
  expect(stderr.toString('utf8')).toContain("can't cd to /no/such")
})

test('only the beginning is kept of a command that never stops talking; the time-out ends it', async () => {
  const shell = await opened()
  const { exitCode, stdout } = await shell.run(['yes'], { timeout: 500, keep: 10 })
  expect(exitCode).toBe(124)
  expect(stdout.toString('utf8')).toBe('y\ny\ny\ny\ny\n')
  expect(text(await shell.run(['sh', '-c', 'yes | head -c 100000; echo end >&2'], { keep: 4 }))).toBe('0 y\ny\n|end\n')
})

test('a time-out ends all that the command started, and shows what it had said', async () => {
  const shell = await opened()
  const script = 'echo begun; sleep 98765 & sleep 98765'
  expect(text(await shell.run(['sh', '-c', script], { timeout: 500 }))).toBe('124 begun\n|')
  expect(text(await shell.run(['pgrep', '-f', '^sleep 98765$']))).toBe('1 |')
  expect(text(await shell.run(['sh', '-c', 'exit 124']))).toBe('124 |')
})

test('what a command leaves running goes on', async () => {
  const shell = await opened()
  const script = 'sleep 87654 >/dev/null 2>&1 & echo $!'
  const pid = (await shell.run(['sh', '-c', script])).stdout.toString('utf8').trim()
  expect(text(await shell.run(['kill', pid]))).toBe('0 |')
})

test('leaves nothing behind', async () => {
  const program = await terminal('bash -i')
  const shell = new SerialShell(line, { signal: never })
  await shell.open()
  const input = (await shell.run(['readlink', '/proc/self/fd/0'])).stdout.toString('utf8').trim()
  expect(input).toMatch(/^\/run\/muster-trial\.\w{6}\/input$/)
  program.signal('SIGKILL')
  await expect.poll(() => exists(dirname(input)), { timeout: 60_000 }).toBe(false)
})

test('it needs no more tools than busybox has', async () => {
  await mkdir(join(dir, 'bin'))
  const { stdout } = await exec('busybox', ['--list'])
  for (const name of stdout.toString('utf8').trim().split('\n'))
    await symlink('/usr/bin/busybox', join(dir, 'bin', name))
  const shell = await opened(`env PATH=${dir}/bin sh -i`)
  const input = Buffer.alloc(40_000, 'a\n')
  expect(text(await shell.run(['wc', '-c'], { input }))).toMatch(/^0 +40000\n\|$/)
  expect((await shell.run(['sleep', '100'], { timeout: 300 })).exitCode).toBe(124)
})

describe('a line that is not what it should be', () => {
  test.each([
    ['next\ndone 0 0\n', 'it says "done 0 0", which is no answer'],
    ['hello\n', 'it says "hello", which is no answer'],
    ['next\nmore 9999\nmore 0\n', 'it says "more 0", which is no answer'],
    ['next\nfull\n', 'its /run has no room for what it is sent'],
    ['next\nmore 9999\nmore 9999\ndone 0 99 0\n', 'it sends more than was asked for'],
    ['x'.repeat(200), 'a line is longer than it may be'],
    ['next\n', 'nothing came for 2 s'],
  ])('%j', async (words, problem) => {
    const shell = await answering(words)
    const error = `the machine does not answer on its second serial line: ${problem}`
    await expect(shell.run(['true'], { keep: 10, timeout: 1, input: 'x' })).rejects.toThrow(error)
    // Nor is it asked again.
    await expect(shell.run(['true'])).rejects.toThrow(error)
  })

  test('is silent', async () => {
    await terminal('cat >/dev/null')
    const shell = new SerialShell(line, { signal: never, patience: 300 })
    await expect(shell.open()).rejects.toThrow('does not answer on its second serial line: nothing came for 0.3 s')
  })

  test('is closed', async () => {
    const shell = await opened()
    const cut = shell.run(['sleep', '100'], { timeout: 1000 })
    line.destroy()
    await expect(cut).rejects.toThrow('does not answer on its second serial line: the line is closed')
  })
})

test('a command that is cut short has no result', async () => {
  const stop = new AbortController()
  const shell = await opened('bash -i', { signal: stop.signal })
  const cut = shell.run(['sleep', '100'], { timeout: 1000 })
  stop.abort(new Error('enough'))
  await expect(cut).rejects.toThrow('enough')
  await expect(shell.run(['true'])).rejects.toThrow('enough')
})
