import { once } from 'node:events'
import { connect } from 'node:net'
import { answerWith } from '../skills.ts'

export interface Download {
  readonly url: string
  readonly size: number
  readonly clients: number
}

export interface Downloaded {
  /** Bytes that each client had when half of all had come. */
  readonly half: readonly number[]
  /** Seconds until each client had it all. */
  readonly done: readonly number[]
}

/** Clients that begin at the same time and throw away what they get: no copy, no disk, little of their own to wait for. */
async function download({ url, size, clients }: Download): Promise<Downloaded> {
  const { port, pathname } = new URL(url)
  const bytes = Array.from({ length: clients }, () => 0)
  let half: number[] = []
  let total = 0
  // One that reads much at once keeps the others waiting.
  const buffer = Buffer.allocUnsafeSlow(clients === 1 ? 2 ** 20 : 2 ** 16)
  const began = performance.now()
  const one = async (client: number): Promise<number> => {
    const callback = (length: number): boolean => {
      bytes[client] = (bytes[client] ?? 0) + length
      total += length
      if (half.length === 0 && total >= (size * clients) / 2) half = [...bytes]
      return true
    }
    const socket = connect({ host: '127.0.0.1', port: Number(port), onread: { buffer, callback } })
    socket.write(`GET ${pathname} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n`)
    await once(socket, 'close')
    if ((bytes[client] ?? 0) < size) throw new Error(`${url}: only ${bytes[client]} bytes came`)
    return (performance.now() - began) / 1000
  }
  const done = await Promise.all(bytes.map((_, client) => one(client)))
  return { half, done }
}

const skills = { download }
export type DownloadSkills = typeof skills
answerWith(skills)
