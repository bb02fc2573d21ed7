import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { Server } from 'node:http'
import type { Server as SecureServer } from 'node:https'

const GRACE = 2000
/** Of the files that may be open, these are for everything but connections. Every node keeps one. */
const OTHER_FILES = 1000

/** Whoever is in the middle of a download may finish it, for a moment; the rest comes back with a Range. */
export async function close(server: Server | SecureServer): Promise<void> {
  const closed = once(server, 'close')
  server.close()
  server.closeIdleConnections()
  const patience = setTimeout(() => server.closeAllConnections(), GRACE)
  await closed
  clearTimeout(patience)
}

export function mostConnections(): number {
  const [, most = '1024'] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1')) ?? []
  return Math.max(Number(most) - OTHER_FILES, 200)
}

export function portOf(server: Server | SecureServer): number | undefined {
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : undefined
}
