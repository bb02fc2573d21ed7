import { type TLSSocket, connect } from 'node:tls'
import { answerWith } from '../skills.ts'

export interface AskLoad {
  readonly url: string
  readonly ca: string
  /** Of all nodes: each connection asks for one after the other. */
  readonly credentials: readonly string[]
  readonly connections: number
}

export interface AskResult {
  readonly asked: number
  /** Who got a new list. */
  readonly fresh: number
  readonly failed: number
  readonly p99: number
}

const HEAD_END = '\r\n\r\n'
let times: number[] = []
let fresh = 0
let failed = 0
/** The list that each node has. */
let versions: string[] = []
const sockets: TLSSocket[] = []

/** Nodes ask whether their list of files is still the same, until the end of this program. */
async function start({ url, ca, credentials, connections }: AskLoad): Promise<void> {
  versions = credentials.map(() => '')
  const { hostname: host, port } = new URL(url)
  await Promise.all(
    Array.from({ length: connections }, async (_, first) => {
      const socket = connect({ host, port: Number(port), ca })
      await new Promise<void>((resolve, reject) => {
        socket.once('secureConnect', resolve)
        socket.once('error', reject)
      })
      sockets.push(socket)
      askOn(socket, { host, credentials, next: first, step: connections })
    }),
  )
}

interface Round {
  readonly host: string
  readonly credentials: readonly string[]
  next: number
  readonly step: number
}

function askOn(socket: TLSSocket, round: Round): void {
  let text = ''
  let began = 0
  const ask = (): void => {
    const { host, credentials, next } = round
    began = performance.now()
    socket.write(
      `GET /node/files HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${credentials[next]}\r\nIf-None-Match: "${versions[next]}"\r\n\r\n`,
    )
  }
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    text += chunk
    const end = text.indexOf(HEAD_END)
    if (end < 0) return
    const head = text.slice(0, end)
    const length = Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? 0)
    if (text.length < end + HEAD_END.length + length) return
    times.push(performance.now() - began)
    if (head.startsWith('HTTP/1.1 200')) {
      fresh++
      versions[round.next] = /^etag: "([0-9a-f]+)"/im.exec(head)?.[1] ?? ''
    } else if (!head.startsWith('HTTP/1.1 304')) failed++
    text = ''
    round.next = (round.next + round.step) % round.credentials.length
    ask()
  })
  ask()
}

/** Since it was last asked. */
function result(): AskResult {
  const sorted = times.toSorted((a, b) => a - b)
  const said = { asked: times.length, fresh, failed, p99: sorted[Math.floor(sorted.length * 0.99)] ?? 0 }
  times = []
  fresh = 0
  failed = 0
  return said
}

const skills = { start, result }
export type AskSkills = typeof skills
answerWith(skills, async () => {
  for (const socket of sockets) socket.destroy()
})
