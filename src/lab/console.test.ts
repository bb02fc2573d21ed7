import { once } from 'node:events'
import { appendFile, mkdtempDisposable, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { attachConsole, printLog } from './console.ts'
import { NODE, labOptions, temporaryLab } from './testing.ts'

/** A screen: what was written on it, and a wait for more. */
class Screen extends PassThrough {
  text = ''
  constructor() {
    super()
    this.on('data', (chunk: Buffer) => (this.text += chunk.toString('latin1')))
  }
  async says(what: string): Promise<void> {
    while (!this.text.includes(what)) await new Promise(resolve => this.once('data', resolve))
  }
}

class Keyboard extends PassThrough {
  readonly isTTY = true
  readonly modes: boolean[] = []
  setRawMode(isRaw: boolean): void {
    this.modes.push(isRaw)
  }
}

/** As people do, one key after the other: a BIOS remembers only fifteen. Each has come when it is seen. */
async function type(keys: string, { stdin, stdout }: ReturnType<typeof terminal>): Promise<void> {
  const before = stdout.text.length
  for (let typed = 1; typed <= keys.length; typed++) {
    stdin.write(keys.slice(typed - 1, typed))
    while (!stdout.text.slice(before).includes(keys.slice(0, typed))) await once(stdout, 'data')
  }
  stdin.write('\r')
}

const terminal = () => ({ stdin: new Keyboard(), stdout: new Screen() })
const CTRL_B = '\x02'
const CTRL_BRACKET = '\x1d'

describe('the console of a machine', () => {
  it('is the terminal, until Ctrl-] or until the machine is off; for one at a time', async () => {
    const lab = await temporaryLab()
    await lab.up(labOptions(lab, { nodes: [NODE] }))
    const machine = await lab.machine('n001')
    const { stdin, stdout } = terminal()
    const attached = attachConsole(machine, { stdin, stdout })
    // Before it asks for the key, which it does for two seconds only.
    await stdout.says('iPXE initialising devices')
    stdin.write(CTRL_B)
    await stdout.says('iPXE>')
    await type('echo a-${net0/mac}-z', { stdin, stdout })
    await stdout.says('a-52:54:00:77:00:01-z')
    expect(stdout.text.startsWith('[n001: Ctrl-] leaves]\r\n')).toBe(true)
    expect(stdin.modes).toEqual([true])

    await expect(attachConsole(machine, terminal())).rejects.toMatchObject({
      code: 'LAB_BUSY',
      message: 'somebody else has the console of n001',
    })
    stdin.write(`${CTRL_BRACKET}echo never\r`)
    expect(await attached).toBe('left')
    expect(stdout.text.endsWith('\r\n[left n001]\r\n')).toBe(true)
    expect(stdin.modes).toEqual([true, false])

    // Whoever comes next sees what was said before.
    const next = terminal()
    const again = attachConsole(machine, next)
    await next.stdout.says('a-52:54:00:77:00:01-z')
    await type('echo ${net0/mac}-again', next)
    await next.stdout.says('52:54:00:77:00:01-again')
    expect(next.stdout.text).not.toContain('never')
    await lab.power(['n001'], 'off')
    expect(await again).toBe('off')
    expect(next.stdout.text.endsWith('\r\n[n001 is off]\r\n')).toBe(true)
    expect(await readFile(machine.files.consoleLog, 'latin1')).toContain('a-52:54:00:77:00:01-z')

    await expect(attachConsole(machine, terminal())).rejects.toMatchObject({
      code: 'LAB_NOT_RUNNING',
      message: 'n001 is off',
      hint: 'switch it on: muster lab power n001 on',
    })
  })

  it('is left when nobody can type any more, and when one is told to stop', async () => {
    const lab = await temporaryLab()
    await lab.up(labOptions(lab, { nodes: [NODE] }))
    const machine = await lab.machine('n001')
    const closed = terminal()
    const attached = attachConsole(machine, closed)
    await closed.stdout.says('leaves]')
    closed.stdin.end()
    expect(await attached).toBe('left')
    const stop = new AbortController()
    const stopped = terminal()
    const again = attachConsole(machine, stopped, stop.signal)
    await stopped.stdout.says('leaves]')
    stop.abort()
    expect(await again).toBe('left')
  })
})

describe('the log of a machine', () => {
  it('is printed, as a whole or from the beginning of a line near its end', async () => {
    await using dir = await mkdtempDisposable(join(tmpdir(), 'muster-console-'))
    const file = join(dir.path, 'console.log')
    await writeFile(file, 'first\nsecond\nthird\n')
    for (const [last, text] of [
      [undefined, 'first\nsecond\nthird\n'],
      [10, 'third\n'],
      [1000, 'first\nsecond\nthird\n'],
    ] as const) {
      const screen = new Screen()
      await printLog(file, screen, last === undefined ? {} : { last })
      screen.end()
      await new Promise(resolve => screen.once('end', resolve))
      expect(screen.text).toBe(text)
    }
  })

  it('is followed, also when there is none yet', async () => {
    await using dir = await mkdtempDisposable(join(tmpdir(), 'muster-console-'))
    const file = join(dir.path, 'console.log')
    const screen = new Screen()
    const stop = new AbortController()
    const following = printLog(file, screen, { follow: stop.signal })
    await appendFile(file, 'one')
    await screen.says('one')
    await appendFile(file, 'two'.repeat(50_000))
    await screen.says('two'.repeat(50_000))
    stop.abort()
    await following
    expect(screen.text).toBe(`one${'two'.repeat(50_000)}`)
  })
})
