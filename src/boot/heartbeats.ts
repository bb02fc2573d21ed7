import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Readable, Writable } from 'node:stream'
import { Heartbeat } from '../nodes/reports.ts'

/**
 * Heartbeats of one node over one request that lasts: a line of JSON says what it runs, an empty one that this is still so.
 * Each line is answered at once. Thousands of nodes cost next to nothing that way, where a connection for each heartbeat
 * costs more than all that is done with it.
 */
export class HeartbeatLines {
  readonly #hear: (said: Heartbeat) => Heard
  #said: Heartbeat | undefined
  #rest = ''

  constructor(hear: (said: Heartbeat) => Heard) {
    this.#hear = hear
  }

  /** What is said to the lines that came with this, each byte of it a character; with another status than 200 it is the last. */
  take(text: string): Heard {
    const lines = (this.#rest + text).split('\n')
    this.#rest = lines.pop() ?? ''
    let body = ''
    for (const line of lines) {
      if (line !== '') this.#said = parse(line)
      const heard = this.#said === undefined ? NOT_UNDERSTOOD : this.#hear(this.#said)
      if (heard.status !== 200) return heard
      body += heard.body
    }
    return this.#rest.length > LONGEST_LINE ? NOT_UNDERSTOOD : { status: 200, body }
  }
}

export interface Heard {
  readonly status: number
  readonly body: string
}

/** A node has less to say of itself. */
const LONGEST_LINE = 16 * 1024
const NOT_UNDERSTOOD: Heard = { status: 400, body: 'error: that is no heartbeat\nhint: a line of JSON comes first\n' }

function parse(line: string): Heartbeat | undefined {
  try {
    return Heartbeat.parse(JSON.parse(Buffer.from(line, 'latin1').toString('utf8')))
  } catch {
    return undefined
  }
}

/** Resolves when the node has gone. */
export function hearRequest(request: IncomingMessage, response: ServerResponse, lines: HeartbeatLines): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  request.setEncoding('latin1')
  request.on('data', (chunk: string) => {
    if (response.writableEnded) return
    const { status, body } = lines.take(chunk)
    if (body === '') return
    // There is nothing else this connection could be for.
    if (!response.headersSent) response.writeHead(status, { 'content-type': 'text/plain', connection: 'close' })
    const isTaken = response.write(body)
    if (status !== 200) response.end()
    else if (!isTaken) waitFor(request, response)
  })
  request.once('end', () => response.end())
  request.once('error', () => {})
  response.once('close', resolve)
  return promise
}

const HEAD = 'content-type: text/plain\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n'
const WORDS: Readonly<Record<number, string>> = { 200: 'OK', 400: 'Bad Request', 404: 'Not Found' }
const END = '0\r\n\r\n'
/** Missed by far. */
const SILENCE = 60_000

/**
 * The same without Node's HTTP, which would take four times as long for each line: what came after the head of the request,
 * and all that comes, is chunks.
 */
export function hearSocket(socket: Socket, first: Buffer, lines: HeartbeatLines): void {
  const chunks = new Chunks()
  let hasHead = false
  const take = (bytes: Buffer): void => {
    const text = chunks.take(bytes)
    const { status, body } = text === undefined ? NOT_UNDERSTOOD : lines.take(text)
    const isLast = status !== 200 || chunks.hasEnded
    if (body === '' && !isLast) return
    const head = hasHead ? '' : `HTTP/1.1 ${status} ${WORDS[status] ?? 'Error'}\r\n${HEAD}`
    hasHead = true
    const said = body === '' ? '' : `${Buffer.byteLength(body).toString(16)}\r\n${body}\r\n`
    const isTaken = socket.write(isLast ? head + said + END : head + said)
    if (isLast) {
      socket.off('data', take)
      socket.resume()
      socket.destroySoon()
    } else if (!isTaken) waitFor(socket, socket)
  }
  socket.setTimeout(SILENCE)
  socket.on('data', take)
  if (first.length > 0) take(first)
}

/** Whoever talks on without listening has to wait. */
function waitFor(who: Readable, answers: Writable): void {
  who.pause()
  answers.once('drain', () => who.resume())
}

/** An empty line, as it comes two thousand times a second. */
const EMPTY_LINE = Buffer.from('1\r\n\n\r\n')

/** Takes a body in chunks apart, and nothing but plain chunks. */
class Chunks {
  hasEnded = false
  #rest = ''

  /** What they hold, each byte a character; undefined where that is no chunk. */
  take(bytes: Buffer): string | undefined {
    if (this.#rest === '' && bytes.equals(EMPTY_LINE)) return '\n'
    this.#rest += bytes.toString('latin1')
    let content = ''
    for (;;) {
      const line = this.#rest.indexOf('\r\n')
      if (line < 0) return this.#rest.length > MOST_DIGITS ? undefined : content
      const digits = this.#rest.slice(0, line)
      if (digits.length > MOST_DIGITS || !/^[0-9a-f]+$/i.test(digits)) return undefined
      const [start, length] = [line + 2, Number.parseInt(digits, 16)]
      if (this.#rest.length < start + length + 2) return content
      if (this.#rest.slice(start + length, start + length + 2) !== '\r\n') return undefined
      content += this.#rest.slice(start, start + length)
      this.#rest = this.#rest.slice(start + length + 2)
      this.hasEnded = length === 0
      if (this.hasEnded) return content
    }
  }
}

const MOST_DIGITS = 5
