/** A mirror that tests can watch, and that can misbehave. */
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'

export interface Mirror extends AsyncDisposable {
  readonly url: string
  /** Paths that were asked for. */
  readonly asked: string[]
  /** What is given instead of the file; a number is a status. */
  readonly instead: Map<string, Uint8Array | number>
}

export async function startMirror(dir: string): Promise<Mirror> {
  const asked: string[] = []
  const instead = new Map<string, Uint8Array | number>()
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url ?? '/')
    asked.push(path)
    const other = instead.get(path)
    if (typeof other === 'number') response.writeHead(other).end()
    else if (other !== undefined) response.end(other)
    else
      readFile(join(dir, path)).then(
        content => response.end(content),
        () => response.writeHead(404).end(),
      )
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    asked,
    instead,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

/** Where nobody listens. */
export const DEAD = 'http://127.0.0.1:1'
