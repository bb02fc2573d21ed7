import { mkdtemp, open, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type Program, type ProgramOptions, startProgram } from './program.ts'

async function temporaryDir(): Promise<string> {
  const dir = await realpath(await mkdtemp(join(tmpdir(), 'muster-program-')))
  onTestFinished(() => rm(dir, { recursive: true, force: true }))
  return dir
}

interface Talking extends Program {
  /** What it said so far. */
  readonly lines: readonly string[]
  says(line: string): Promise<void>
}

/** Runs a script of sh. */
async function sh(script: string, options: ProgramOptions = {}): Promise<Talking> {
  const lines: string[] = []
  const heard = new Set<() => void>()
  const onLine = (line: string): void => {
    lines.push(line)
    for (const tell of heard) tell()
  }
  const program = await startProgram(
    'sh',
    ['-c', script],
    options.outputTo === undefined ? { ...options, onLine } : options,
  )
  onTestFinished(() => program.signal('SIGKILL'))
  return {
    ...program,
    lines,
    async says(line) {
      while (!lines.includes(line)) {
        const { promise, resolve } = Promise.withResolvers<void>()
        heard.add(resolve)
        await promise
      }
    },
  }
}

const isThere = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

describe('a program', () => {
  it('runs beside us and is heard line by line, whichever stream it uses', async () => {
    const program = await sh('echo one; echo two >&2; printf three; exec sleep 1000')
    await program.says('one')
    await program.says('two')
    expect(program.lines).not.toContain('three')
    expect(isThere(program.pid)).toBe(true)
    await program.stop()
    await program.says('three')
  })

  it('says how it ended: with a status, or by a signal', async () => {
    expect(await (await sh('exit 7')).ended).toBe(7)
    expect(await (await sh('kill -USR1 $$')).ended).toBe('SIGUSR1')
  })

  it('has said its last word when it has ended', async () => {
    const programs = await Promise.all(Array.from({ length: 20 }, () => sh('echo one; printf "last word"; exit 1')))
    await Promise.all(programs.map(({ ended }) => ended))
    expect(new Set(programs.flatMap(({ lines }) => lines))).toEqual(new Set(['one', 'last word']))
  })

  it('has ended although it left somebody behind', async () => {
    const program = await sh('sleep 1000 & echo $!')
    expect(await program.ended).toBe(0)
    process.kill(Number(program.lines[0]), 'SIGKILL')
  })

  it('has its directory, and its environment beside ours', async () => {
    const dir = await temporaryDir()
    const program = await sh('pwd; echo "$COLOUR $PATH"', { cwd: dir, env: { COLOUR: 'blue' } })
    await program.says(`blue ${process.env['PATH']}`)
    expect(program.lines).toEqual([dir, `blue ${process.env['PATH']}`])
  })

  it('that is not installed is no program', async () => {
    await expect(startProgram('no-such-program', [])).rejects.toMatchObject({
      code: 'EXEC_FAILED',
      message: 'no-such-program: is not installed',
    })
  })

  it('that may not be run is no program either', async () => {
    const file = join(await temporaryDir(), 'plain')
    await writeFile(file, 'text')
    await expect(startProgram(file, [])).rejects.toMatchObject({ code: 'EACCES' })
  })

  it('gets no input to wait for', async () => {
    const program = await sh('cat; echo end')
    expect(await program.ended).toBe(0)
  })

  it('may write into a file, at its end', async () => {
    const file = join(await temporaryDir(), 'log')
    await writeFile(file, 'before\n')
    await using log = await open(file, 'a')
    const program = await sh('echo out; echo err >&2', { outputTo: log.fd })
    expect(await program.ended).toBe(0)
    expect(await readFile(file, 'utf8')).toBe('before\nout\nerr\n')
  })

  it('inherits the descriptors it is given as 3, 4 and so on', async () => {
    const dir = await temporaryDir()
    await writeFile(join(dir, 'a'), 'first')
    await writeFile(join(dir, 'b'), 'second')
    await using first = await open(join(dir, 'a'))
    await using second = await open(join(dir, 'b'))
    const program = await sh('cat <&3; echo; cat <&4; echo; [ -e /proc/$$/fd/5 ] || echo end', {
      descriptors: [first.fd, second.fd],
    })
    await program.says('end')
    expect(program.lines).toEqual(['first', 'second', 'end'])
  })
})

describe('stopping', () => {
  it('asks, and waits until it has ended', async () => {
    // Without a child, which might miss the signal.
    const wait = `process.once("SIGTERM", () => { console.log("bye"); process.exit(0) }); setInterval(() => {}, 1e9)`
    const program = await sh(`exec '${process.execPath}' -e '${wait}; console.log("here")'`)
    await program.says('here')
    await program.stop()
    expect(await program.ended).toBe(0)
    await program.says('bye')
  })

  it('insists when it does not listen', async () => {
    const program = await sh(`trap '' TERM; echo here; exec sleep 1000`)
    await program.says('here')
    await program.stop(20)
    expect(await program.ended).toBe('SIGKILL')
  })

  it('of one that has ended is nothing', async () => {
    const program = await sh('exit 3')
    await program.ended
    await program.stop()
    program.signal('SIGTERM')
    expect(await program.ended).toBe(3)
  })

  it('comes with the end of a block', async () => {
    let pid = 0
    {
      await using program = await startProgram('sleep', ['1000'])
      pid = program.pid
      expect(isThere(pid)).toBe(true)
    }
    expect(isThere(pid)).toBe(false)
  })
})

describe('a detached program', () => {
  it('outlives whoever started it, in a session of its own', async () => {
    const module = JSON.stringify(new URL('program.ts', import.meta.url).href)
    const script = `
      const { startProgram } = await import(${module})
      const { pid } = await startProgram('sleep', ['1000'], { detached: true })
      console.log(pid)`
    const said = Promise.withResolvers<number>()
    const starter = await startProgram(process.execPath, ['--input-type=module', '-e', script], {
      onLine: line => /^\d+$/.test(line) && said.resolve(Number(line)),
    })
    const pid = await said.promise
    onTestFinished(() => void process.kill(pid, 'SIGKILL'))
    // It would not end by itself while it had to wait for the other.
    expect(await starter.ended).toBe(0)
    expect(isThere(pid)).toBe(true)
    const session = (await readFile(`/proc/${pid}/stat`, 'latin1')).split(' ')[5]
    expect(session).toBe(String(pid))
  })
})
