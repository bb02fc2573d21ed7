import { mkdtemp, rm } from 'node:fs/promises'
import { type Server, type Socket, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { exec } from '../lib/exec.ts'
import { Qmp } from './qmp.ts'

let path = ''
beforeEach(async () => {
  const made = await mkdtemp(join(tmpdir(), 'muster-qmp-'))
  path = join(made, 'qmp')
  onTestFinished(() => rm(made, { recursive: true }))
})

const GREETING = '{"QMP": {"version": {"qemu": {"major": 7}}, "capabilities": ["oob"]}}\r\n'

/** Greets, and answers each line with what `answer` makes of it. */
let goAway = (): void => {}
async function qemu(answer: (asked: { execute: string; id: number }, socket: Socket) => void, greeting = GREETING) {
  const sockets = new Set<Socket>()
  const server: Server = createServer(socket => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.write(greeting)
    socket.setEncoding('utf8').on('data', (text: string) => {
      for (const line of text.trim().split('\n')) answer(JSON.parse(line) as { execute: string; id: number }, socket)
    })
  })
  await new Promise<void>(resolve => void server.listen(path, resolve))
  goAway = () => {
    for (const socket of sockets) socket.destroy()
    server.close()
  }
  onTestFinished(() => goAway())
}

const ok = (id: number): string => `{"return": {}, "id": ${id}}\r\n`

describe('QEMU itself', () => {
  it('answers, refuses what it does not know, tells of events, and ends', async () => {
    const args = [
      '-machine',
      'none',
      '-nodefaults',
      '-display',
      'none',
      '-daemonize',
      '-qmp',
      `unix:${path},server=on,wait=off`,
    ]
    await exec('qemu-system-x86_64', args)
    using qmp = await Qmp.connect(path)
    expect(await qmp.execute('query-status')).toMatchObject({ status: 'running' })
    await expect(qmp.execute('make_coffee')).rejects.toMatchObject({
      code: 'LAB_FAILED',
      message: `${path}: The command make_coffee has not been found`,
    })
    const [stopped] = await Promise.all([qmp.event('STOP'), qmp.execute('stop')])
    expect(stopped.event).toBe('STOP')
    await Promise.race([qmp.execute('quit'), qmp.closed])
    await qmp.closed
    await expect(qmp.execute('query-status')).rejects.toMatchObject({ message: `${path}: the machine has ended` })
  })
})

describe('replies', () => {
  it('find their question in whatever order and pieces they come', async () => {
    const asked: number[] = []
    await qemu(({ execute, id }, socket) => {
      if (execute === 'qmp_capabilities') socket.write(ok(id))
      else asked.push(id)
      if (asked.length < 2) return
      const text = asked
        .reverse()
        .map(each => `{"return": {"number": ${each}}, "id": ${each}}\r\n`)
        .join('')
      socket.write(`{"event": "RESET", "timestamp": {}}\n${text.slice(0, 20)}`, () => socket.write(text.slice(20)))
    })
    using qmp = await Qmp.connect(path)
    const reset = qmp.event('RESET')
    expect(await Promise.all([qmp.execute('first'), qmp.execute('second')])).toEqual([{ number: 2 }, { number: 3 }])
    expect((await reset).event).toBe('RESET')
  })
})

const nothing = (): void => {}

describe('a machine that misbehaves', () => {
  it('may not be there', async () => {
    await expect(Qmp.connect(path)).rejects.toMatchObject({ code: 'LAB_FAILED', message: `${path}: nothing answers` })
  })

  it('may say nothing', async () => {
    await qemu(nothing, '')
    await expect(Qmp.connect(path, 50)).rejects.toMatchObject({ message: `${path}: says nothing` })
  })

  it('may not answer', async () => {
    await qemu(nothing)
    await expect(Qmp.connect(path, 50)).rejects.toMatchObject({ message: `${path}: does not answer qmp_capabilities` })
  })

  it.each([
    ['no JSON', 'hello\n', 'says what is no QMP: hello'],
    ['neither reply nor event', '{"id": 1}\n', 'says what is no QMP: {"id": 1}'],
    ['an answer to nothing', '{"return": {}, "id": 77}\n', 'answers what was not asked (77)'],
    ['a line without end', 'x'.repeat(2_000_000), 'says more in one line than it may'],
  ])('may say %s', async (_, text, message) => {
    await qemu((_asked, socket) => socket.write(text))
    await expect(Qmp.connect(path)).rejects.toMatchObject({ code: 'LAB_FAILED', message: `${path}: ${message}` })
  })

  it('may end in the middle of it, and whoever waits is told', async () => {
    await qemu(({ execute, id }, socket) => (execute === 'qmp_capabilities' ? socket.write(ok(id)) : socket.destroy()))
    using qmp = await Qmp.connect(path)
    const event = qmp.event('SHUTDOWN')
    await expect(qmp.execute('quit')).rejects.toMatchObject({ message: `${path}: the machine has ended` })
    await expect(event).rejects.toMatchObject({ message: `${path}: the machine has ended` })
  })

  it('that goes without having read all it was told has ended too', async () => {
    await qemu(({ execute, id }, socket) => {
      if (execute === 'qmp_capabilities') {
        // What comes next stays unread: to whoever sent it, the kernel says that the connection was reset.
        socket.pause()
        socket.write(ok(id))
      }
    })
    using qmp = await Qmp.connect(path)
    const asked = qmp.execute('stop')
    goAway()
    await expect(asked).rejects.toMatchObject({ message: `${path}: the machine has ended` })
  })

  it('may never say what one waits for', async () => {
    await qemu(({ id }, socket) => socket.write(ok(id)))
    using qmp = await Qmp.connect(path)
    await expect(qmp.event('RESET', 50)).rejects.toMatchObject({ message: `${path}: has not said RESET` })
  })
})
