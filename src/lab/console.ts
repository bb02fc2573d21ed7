import { once } from 'node:events'
import { watch } from 'node:fs'
import { open } from 'node:fs/promises'
import { connect } from 'node:net'
import type { Readable, Writable } from 'node:stream'
import { MusterError } from '../lib/errors.ts'
import { tryLock } from '../state/lock.ts'
import type { Machine } from './machine.ts'

export interface ConsoleTerminal {
  readonly stdin: Readable & { readonly isTTY?: boolean; setRawMode?(isRaw: boolean): unknown }
  readonly stdout: Writable
}

/** Ctrl-], as with telnet and virsh: no program on the other side wants it. */
const LEAVE = 0x1d
/** How much of what was said before is shown. */
const RECENT = 4096

/**
 * The terminal becomes the machine's: every key goes to it, also Ctrl-C. Ends when somebody types Ctrl-], with `left`, or
 * when the machine is switched off, with `off`.
 */
export async function attachConsole(
  machine: Machine,
  { stdin, stdout }: ConsoleTerminal,
  signal?: AbortSignal,
): Promise<'left' | 'off'> {
  const { name } = machine.spec
  if ((await machine.process()) === undefined)
    throw new MusterError('LAB_NOT_RUNNING', `${name} is off`, { hint: `switch it on: muster lab power ${name} on` })
  // A second one would be connected, and yet see nothing.
  using lock = await tryLock(`${machine.files.console}.lock`)
  if (lock === undefined)
    throw new MusterError('LAB_BUSY', `somebody else has the console of ${name}`, {
      hint: `watch it with: muster lab log ${name} --follow`,
    })
  const socket = connect(machine.files.console)
  await once(socket, 'connect')
  stdout.write(`[${name}: Ctrl-] leaves]\r\n`)
  await printLog(machine.files.consoleLog, stdout, { last: RECENT })
  const ended = Promise.withResolvers<'left' | 'off'>()
  const type = (chunk: Buffer): void => {
    const end = chunk.indexOf(LEAVE)
    socket.write(end === -1 ? chunk : chunk.subarray(0, end))
    if (end !== -1) ended.resolve('left')
  }
  const leave = (): void => ended.resolve('left')
  socket.on('data', (chunk: Buffer) => stdout.write(chunk))
  socket.on('error', () => ended.resolve('off'))
  socket.on('close', () => ended.resolve('off'))
  stdin.on('data', type)
  stdin.once('end', leave)
  signal?.addEventListener('abort', leave)
  if (signal?.aborted === true) leave()
  stdin.setRawMode?.(true)
  stdin.resume()
  try {
    const how = await ended.promise
    stdout.write(how === 'off' ? `\r\n[${name} is off]\r\n` : `\r\n[left ${name}]\r\n`)
    return how
  } finally {
    stdin.setRawMode?.(false)
    stdin.pause()
    stdin.off('data', type)
    stdin.off('end', leave)
    signal?.removeEventListener('abort', leave)
    socket.destroy()
  }
}

export interface LogOptions {
  /** Only that many bytes at its end, from the beginning of a line. */
  readonly last?: number
  /** And what comes, until the signal says stop. */
  readonly follow?: AbortSignal
}

/** What a machine has said; a machine that was never on has said nothing. */
export async function printLog(file: string, output: Writable, { last, follow }: LogOptions = {}): Promise<void> {
  // Made here if need be: what is not there cannot be watched.
  await using log = await open(file, 'a+', 0o600)
  const { size } = await log.stat()
  let at = last === undefined ? 0 : Math.max(0, size - last)
  let isCut = at > 0
  const copy = async (): Promise<void> => {
    const buffer = Buffer.alloc(CHUNK)
    for (;;) {
      const { bytesRead } = await log.read(buffer, 0, CHUNK, at)
      if (bytesRead === 0) return
      at += bytesRead
      const chunk = buffer.subarray(0, bytesRead)
      const shown = isCut ? chunk.subarray(chunk.indexOf(NEWLINE) + 1) : chunk
      isCut = false
      if (!output.write(Buffer.from(shown))) await once(output, 'drain')
    }
  }
  if (follow === undefined) return await copy()
  let changed = Promise.withResolvers<void>()
  const wake = (): void => changed.resolve()
  // Watches at once, where its sister of promises waits until it is first asked: what was said until then would be missed.
  const watcher = watch(file, wake)
  follow.addEventListener('abort', wake)
  try {
    do {
      changed = Promise.withResolvers()
      await copy()
      if (!follow.aborted) await changed.promise
    } while (!follow.aborted)
  } finally {
    watcher.close()
    follow.removeEventListener('abort', wake)
  }
}

const CHUNK = 65_536
const NEWLINE = 0x0a
