import { randomUUID } from 'node:crypto'
import { constants, openSync } from 'node:fs'
import { open, rm } from 'node:fs/promises'
import { Socket } from 'node:net'
import { join } from 'node:path'
import { exec } from '../../../lib/exec.ts'

/** A pipe with a name: what others write to it we hear, as it comes. */
export interface NamedPipe extends AsyncDisposable {
  readonly path: string
  /** Our own end to write to, which may be lent to a program. */
  readonly writer: number
  /** Waits until all who write to it have closed it and the last of it was heard; or until the signal. */
  finished(signal: AbortSignal): Promise<void>
}

export async function openPipe(dir: string, onData: (chunk: Buffer) => void): Promise<NamedPipe> {
  const path = join(dir, `pipe-${randomUUID()}`)
  // Whoever runs inside may give up being root and still write to /dev/stderr; the directory is ours alone.
  await exec('mkfifo', ['--mode=666', path])
  // Opened without waiting for who writes. We write as well, or it would end before the first one came.
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  const socket = new Socket({ fd: reader, readable: true, writable: false })
  const ended = new Promise<void>(resolve => socket.once('close', () => resolve()))
  socket.on('data', onData)
  const writer = await open(path, 'a')
  return {
    path,
    writer: writer.fd,
    async finished(signal) {
      await writer.close()
      await settledOr(ended, signal)
    },
    async [Symbol.asyncDispose]() {
      socket.destroy()
      await writer.close()
      await rm(path, { force: true })
    },
  }
}

async function settledOr(work: Promise<void>, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  const { promise, resolve } = Promise.withResolvers<void>()
  const stop = (): void => resolve()
  signal.addEventListener('abort', stop, { once: true })
  await Promise.race([work, promise])
  signal.removeEventListener('abort', stop)
}
