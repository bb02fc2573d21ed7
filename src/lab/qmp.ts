import { once } from 'node:events'
import { type Socket, connect } from 'node:net'
import { z } from 'zod'
import { MusterError } from '../lib/errors.ts'

/**
 * The QEMU Machine Protocol: a line of JSON per message, over a socket that has one client at a time.
 *
 *     ← {"QMP": {"version": …, "capabilities": []}}      → {"execute": "qmp_capabilities", "id": 1}
 *     ← {"return": {}, "id": 1}                          → {"execute": "system_reset", "id": 2}
 *     ← {"event": "RESET", …}                            ← {"return": {}, "id": 2}
 */
const QmpEvent = z.object({ event: z.string().min(1), data: z.record(z.string(), z.unknown()).optional() })
export type QmpEvent = z.infer<typeof QmpEvent>

const Message = z.union([
  z.object({ QMP: z.object({ capabilities: z.array(z.string()) }) }),
  QmpEvent,
  z.object({ error: z.object({ class: z.string(), desc: z.string() }), id: z.int() }),
  z.object({ return: z.unknown(), id: z.int() }).refine(message => 'return' in message),
])
type Message = z.infer<typeof Message>

const PATIENCE = 10_000
const LONGEST = 2 ** 20
const ENDED = 'the machine has ended'
const GONE = new Set<string | undefined>(['ECONNRESET', 'EPIPE'])

interface Waiting {
  readonly resolve: (value: unknown) => void
  readonly reject: (error: Error) => void
}

export class Qmp implements Disposable {
  readonly #path: string
  readonly #socket: Socket
  readonly #patience: number
  readonly #replies = new Map<number, Waiting>()
  readonly #events = new Map<string, Set<Waiting>>()
  readonly #greeted = Promise.withResolvers<void>()
  readonly #closed = Promise.withResolvers<void>()
  #text = ''
  #last = 0
  #why: MusterError | undefined

  private constructor(path: string, socket: Socket, patience: number) {
    this.#path = path
    this.#socket = socket
    this.#patience = patience
    socket.setEncoding('utf8')
    socket.on('data', (chunk: string) => this.#read(chunk))
    // One that goes without having read all it was told breaks the connection off; it has ended all the same.
    socket.on('error', (error: NodeJS.ErrnoException) => this.#end(GONE.has(error.code) ? ENDED : error.message))
    socket.on('close', () => this.#end(ENDED))
  }

  static async connect(path: string, patience = PATIENCE): Promise<Qmp> {
    const socket = connect(path)
    const qmp = new Qmp(path, socket, patience)
    try {
      await once(socket, 'connect').catch((error: unknown) => {
        throw new MusterError('LAB_FAILED', `${path}: nothing answers`, { cause: error })
      })
      await qmp.#within(qmp.#greeted.promise, 'says nothing')
      await qmp.execute('qmp_capabilities')
      return qmp
    } catch (error) {
      qmp[Symbol.dispose]()
      throw error
    }
  }

  /** Resolves when the other side has gone away, or we have. */
  get closed(): Promise<void> {
    return this.#closed.promise
  }

  execute(command: string, args?: Readonly<Record<string, unknown>>): Promise<unknown> {
    const id = ++this.#last
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    if (this.#why !== undefined) return Promise.reject(this.#why)
    this.#replies.set(id, { resolve, reject })
    this.#socket.write(`${JSON.stringify({ execute: command, ...(args && { arguments: args }), id })}\n`)
    return this.#within(promise, `does not answer ${command}`).finally(() => this.#replies.delete(id))
  }

  /** The next event of that name; ask before doing what causes it. */
  event(name: string, patience = this.#patience): Promise<QmpEvent> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    if (this.#why !== undefined) return Promise.reject(this.#why)
    const waiting = { resolve, reject }
    const all = this.#events.get(name) ?? new Set()
    this.#events.set(name, all.add(waiting))
    const said = this.#within(promise, `has not said ${name}`, patience).finally(() => all.delete(waiting))
    // Whoever waits for it may fail with something else first.
    said.catch(() => {})
    return said as Promise<QmpEvent>
  }

  [Symbol.dispose](): void {
    this.#end('the connection was closed')
  }

  #read(chunk: string): void {
    this.#text += chunk
    const lines = this.#text.split('\n')
    this.#text = lines.pop() ?? ''
    for (const line of lines) if (this.#why === undefined && line.trim() !== '') this.#take(line)
    if (this.#text.length > LONGEST) this.#end('says more in one line than it may')
  }

  #take(line: string): void {
    const message = parse(line)
    if (message === undefined) return this.#end(`says what is no QMP: ${line.slice(0, 80)}`)
    if ('QMP' in message) return this.#greeted.resolve()
    if ('event' in message) {
      const all = this.#events.get(message.event)
      this.#events.delete(message.event)
      for (const { resolve } of all ?? []) resolve(message)
      return
    }
    const waiting = this.#replies.get(message.id)
    if (waiting === undefined) return this.#end(`answers what was not asked (${message.id})`)
    if ('error' in message) waiting.reject(this.#failure(message.error.desc))
    else waiting.resolve(message.return)
  }

  #end(reason: string): void {
    if (this.#why !== undefined) return
    this.#why = this.#failure(reason)
    this.#socket.destroy()
    const waiting = [...this.#replies.values(), ...[...this.#events.values()].flatMap(all => [...all])]
    for (const { reject } of waiting) reject(this.#why)
    this.#greeted.promise.catch(() => {})
    this.#greeted.reject(this.#why)
    this.#closed.resolve()
  }

  async #within<Result>(work: Promise<Result>, otherwise: string, patience = this.#patience): Promise<Result> {
    const late = Promise.withResolvers<never>()
    const timer = setTimeout(() => late.reject(this.#failure(otherwise)), patience)
    try {
      return await Promise.race([work, late.promise])
    } finally {
      clearTimeout(timer)
    }
  }

  #failure(what: string): MusterError {
    return new MusterError('LAB_FAILED', `${this.#path}: ${what}`)
  }
}

function parse(line: string): Message | undefined {
  try {
    return Message.safeParse(JSON.parse(line)).data
  } catch {
    return undefined
  }
}
