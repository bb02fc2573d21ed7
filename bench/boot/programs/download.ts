import { connect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { answerWith } from '../skills.ts'

export interface Download {
  readonly url: string
  readonly clients: number
  /** They are looked at when so many bytes have come, together. */
  readonly until: number
}

export interface Downloaded {
  readonly seconds: number
  /** Of each client, at that moment. */
  readonly bytes: readonly number[]
}

/** Clients that begin at the same time and throw away what they get: no copy, no disk, little of their own to wait for. */
async function download({ url, clients, until }: Download): Promise<Downloaded> {
  const { port, pathname } = new URL(url)
  const bytes = Array.from({ length: clients }, () => 0)
  const scratch = Buffer.allocUnsafeSlow(2 ** 20)
  let [total, ended] = [0, 0]
  const began = performance.now()
  const sockets = bytes.map((_, client) => {
    const onread = {
      buffer: scratch,
      callback: (length: number): boolean => {
        bytes[client] = (bytes[client] ?? 0) + length
        total += length
        return total < until
      },
    }
    const socket = connect({ host: '127.0.0.1', port: Number(port), onread })
    socket.once('close', () => ended++)
    socket.once('error', () => {})
    socket.write(`GET ${pathname} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n`)
    return socket
  })
  while (total < until && ended < clients) await pause(1)
  const seconds = (performance.now() - began) / 1000
  for (const socket of sockets) socket.destroy()
  if (total < until) throw new Error(`${url}: only ${total} bytes came`)
  return { seconds, bytes }
}

const skills = { download }
export type DownloadSkills = typeof skills
answerWith(skills)
