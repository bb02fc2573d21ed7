import { appendFile, mkdtemp, readFile, realpath, rm } from 'node:fs/promises'
import { createWriteStream } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { MusterError } from './errors.ts'
import { type ExecOptions, exec, quoteCommand } from './exec.ts'

const sh = (script: string, options: ExecOptions = {}) => exec('sh', ['-c', script], options)

async function failureOf(work: Promise<unknown>): Promise<MusterError> {
  const error: unknown = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (error instanceof MusterError) return error
  throw new Error(`no failure of ours: ${String(error)}`)
}

async function temporaryDir(): Promise<string> {
  const dir = await realpath(await mkdtemp(join(tmpdir(), 'muster-exec-')))
  onTestFinished(() => rm(dir, { recursive: true, force: true }))
  return dir
}

describe('a command that works', () => {
  test('gives what it printed, byte for byte, and its exit status', async () => {
    const { stdout, exitCode } = await sh("printf 'a\\n\\377\\000\\n\\n'; echo noise >&2")
    expect([...stdout]).toEqual([0x61, 0x0a, 0xff, 0x00, 0x0a, 0x0a])
    expect(exitCode).toBe(0)
  })

  test('gets its arguments as they are: there is no shell in between', async () => {
    const args = ['a b', '$HOME', '*', "it's", '', 'x;y', '-n', 'ü\n']
    const { stdout } = await exec('printf', ['%s|', ...args])
    expect(stdout.toString('utf8')).toBe("a b|$HOME|*|it's||x;y|-n|ü\n|")
  })

  test('gets its input, its directory and its environment beside ours', async () => {
    const dir = await temporaryDir()
    const { stdout } = await sh('cat; pwd; echo "$COLOUR $PATH"', { input: 'in\n', cwd: dir, env: { COLOUR: 'blue' } })
    expect(stdout.toString('utf8')).toBe(`in\n${dir}\nblue ${process.env['PATH']}\n`)
  })

  test('gets bytes as input', async () => {
    const { stdout } = await exec('od', ['-An', '-tx1'], { input: Uint8Array.of(0, 255, 10) })
    expect(stdout.toString('utf8').trim()).toBe('00 ff 0a')
  })

  test('has nothing to read unless it is given something: nobody is there to answer', async () => {
    expect((await exec('wc', ['-c'])).stdout.toString('utf8').trim()).toBe('0')
    expect((await exec('wc', ['-c'], { input: '' })).stdout.toString('utf8').trim()).toBe('0')
  })

  test('may answer with an exit status that is allowed', async () => {
    const { stdout, exitCode } = await sh('echo differs; exit 3', { allow: [1, 3] })
    expect([stdout.toString('utf8'), exitCode]).toEqual(['differs\n', 3])
  })
})

describe('a command that fails', () => {
  test('is shown as one would type it, with how it ended and what it said last', async () => {
    const error = await failureOf(sh('echo result; echo "cannot do this" >&2; exit 7'))
    expect(error.code).toBe('EXEC_FAILED')
    expect(error.message).toBe(`sh -c 'echo result; echo "cannot do this" >&2; exit 7': failed with exit status 7`)
    expect(error.details).toEqual(['cannot do this'])
  })

  test('shows its output where it complained of nothing', async () => {
    expect((await failureOf(sh('echo one; echo; echo two; false'))).details).toEqual(['one', 'two'])
  })

  test('shows the last 15 lines', async () => {
    const { details } = await failureOf(sh('seq 100 >&2; exit 1'))
    expect(details).toEqual(Array.from({ length: 15 }, (_, at) => String(86 + at)))
  })

  test.each<readonly [string, ExecOptions]>([
    ['kept', {}],
    ['shown as it comes', { onOutput: () => {} }],
  ])('is told by its exit status and not by its output: %s', async (_, options) => {
    const { message, details } = await failureOf(sh('exit 4', options))
    expect([message, details]).toEqual(["sh -c 'exit 4': failed with exit status 4", []])
  })

  test('an exit status beside those that are allowed', async () => {
    expect((await failureOf(sh('exit 2', { allow: [1, 3] }))).message).toMatch(/: failed with exit status 2$/)
  })

  test('one that is not there', async () => {
    expect((await failureOf(exec('muster-no-such-tool', ['--help']))).message).toBe(
      'muster-no-such-tool --help: is not installed',
    )
  })

  test('one that should run in a directory that is not there', async () => {
    expect((await failureOf(exec('true', [], { cwd: '/nowhere' }))).message).toBe(
      'true: there is no directory /nowhere',
    )
  })

  test('one that is ended by a signal', async () => {
    expect((await failureOf(sh('kill -KILL $$'))).message).toBe("sh -c 'kill -KILL $$': was ended by SIGKILL")
  })

  test('one that takes too long', async () => {
    const error = await failureOf(exec('sleep', ['1000'], { timeout: 50 }))
    expect(error.message).toBe('sleep 1000: took too long and was stopped')
  })

  test('one that nobody waits for any more', async () => {
    const controller = new AbortController()
    const work = exec('sleep', ['1000'], { signal: controller.signal, timeout: 0 })
    controller.abort()
    expect((await failureOf(work)).message).toBe('sleep 1000: was ended by SIGTERM')
  })
})

describe('a command with a group of its own', () => {
  test('leaves nobody behind who holds on to its output when a signal ends it', async () => {
    const failure = await exec('sh', ['-c', 'sleep 1000 & kill -TERM $$'], { group: true, timeout: 0 }).catch(String)
    expect(failure).toContain('was ended by SIGTERM')
  })

  test('may leave somebody behind when it ends by itself', async () => {
    const { stdout } = await exec('sh', ['-c', 'sleep 1000 >/dev/null 2>&1 & echo $!'], { group: true })
    const left = Number(stdout.toString())
    expect(process.kill(left, 0)).toBe(true)
    process.kill(left)
  })
})

describe('output as it comes', () => {
  test('both of its streams, while it runs', async () => {
    const fifo = join(await temporaryDir(), 'fifo')
    await exec('mkfifo', [fifo])
    let seen = ''
    const answers: Promise<unknown>[] = []
    // It waits for an answer after each line: only who is told at once can let it go on.
    const script = 'exec 3<> "$FIFO"; for n in 1 2 3; do echo out$n; echo err$n >&2; read line <&3; done'
    const { stdout } = await sh(script, {
      env: { FIFO: fifo },
      onOutput: chunk => {
        seen += chunk.toString('utf8')
        if (chunk.toString('utf8').includes('err')) answers.push(appendFile(fifo, 'go on\n'))
      },
    })
    await Promise.all(answers)
    expect(seen.split('\n').filter(line => line.startsWith('out'))).toEqual(['out1', 'out2', 'out3'])
    expect(seen.split('\n').filter(line => line.startsWith('err'))).toEqual(['err1', 'err2', 'err3'])
    expect(seen.indexOf('err1')).toBeLessThan(seen.indexOf('out2'))
    expect(stdout.length).toBe(0)
  })

  test('all of it, however much it is', async () => {
    let bytes = 0
    await sh('head -c 20000000 /dev/zero; head -c 1000000 /dev/zero >&2', {
      onOutput: chunk => (bytes += chunk.length),
    })
    expect(bytes).toBe(21_000_000)
  })

  test('the end of it comes with the failure, from whichever stream it was', async () => {
    let seen = ''
    const note = (chunk: Buffer): void => void (seen += chunk.toString('utf8'))
    const error = await failureOf(sh('echo unpacking; echo "the disk is full" >&2; exit 1', { onOutput: note }))
    expect([...error.details].sort()).toEqual(['the disk is full', 'unpacking'])
    expect(seen.split('\n').sort()).toEqual(['', 'the disk is full', 'unpacking'])
    const { details } = await failureOf(sh('seq 100; exit 1', { onOutput: note }))
    expect(details).toEqual(Array.from({ length: 15 }, (_, at) => String(86 + at)))
  })

  test('of one endless line the end', async () => {
    const { details } = await failureOf(
      sh("head -c 100000 /dev/zero | tr '\\0' x; echo END; exit 1", { onOutput: () => {} }),
    )
    expect(details.length).toBe(1)
    expect(details[0]).toMatch(/^x+END$/)
    expect(details[0]?.length).toBeLessThanOrEqual(8192)
  })
})

describe('output that flows elsewhere', () => {
  test('into a file, and is not kept', async () => {
    const file = join(await temporaryDir(), 'out')
    const stream = createWriteStream(file)
    const { stdout, exitCode } = await sh('seq 100000', { stdoutTo: stream })
    await finished(stream)
    expect([stdout.length, exitCode]).toEqual([0, 0])
    const text = await readFile(file, 'utf8')
    expect([text.length, text.slice(0, 6), text.slice(-7)]).toEqual([588_895, '1\n2\n3\n', '100000\n'])
  })

  test('at the pace of who takes it', async () => {
    let bytes = 0
    const slow = new Writable({
      highWaterMark: 1000,
      write(chunk: Buffer, _, done) {
        bytes += chunk.length
        setImmediate(done)
      },
    })
    await sh('head -c 3000000 /dev/zero', { stdoutTo: slow })
    await finished(slow)
    expect(bytes).toBe(3_000_000)
  })

  test('its complaints come with the failure all the same', async () => {
    const sink = new Writable({ write: (_chunk, _encoding, done) => done() })
    const error = await failureOf(sh('echo data; echo "broken pipe of dreams" >&2; exit 1', { stdoutTo: sink }))
    expect(error.details).toEqual(['broken pipe of dreams'])
  })
})

describe('a command as one would type it', () => {
  test.each<readonly [string, readonly string[], string]>([
    ['tar', ['--file=/a/b.tar', '-x'], 'tar --file=/a/b.tar -x'],
    ['echo', ['a b', '', '$x', "it's"], `echo 'a b' '' '$x' 'it'\\''s'`],
    ['echo', ['a@b%c+d=e:f,g.h/i-j_k'], 'echo a@b%c+d=e:f,g.h/i-j_k'],
    ['a b', ['ü', '~', 'x\ny'], `'a b' 'ü' '~' 'x\ny'`],
  ])('%s %j', (command, args, text) => {
    expect(quoteCommand(command, args)).toBe(text)
  })

  test('a shell reads back what was meant', async () => {
    const args = ['a b', "it's", '$(id)', '`id`', '"', '\\', '*', '', '\n', '!x', '#']
    const { stdout } = await sh(quoteCommand('printf', ['%s|', ...args]))
    expect(stdout.toString('utf8')).toBe(args.map(arg => `${arg}|`).join(''))
  })
})
