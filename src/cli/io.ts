import type { Readable, Writable } from 'node:stream'

/** The world outside, as main.ts found it: nothing else reads flags, environment or terminal. */
export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  readonly stdin: Readable & { readonly isTTY?: boolean }
  readonly stdout: Writable & { readonly isTTY?: boolean; readonly columns?: number }
  readonly stderr: Writable & { readonly isTTY?: boolean }
  /** Aborted by Ctrl-C. */
  readonly interrupted: AbortSignal
}

/** Options every command has. */
export interface GlobalOptions {
  readonly output: 'table' | 'json' | 'yaml'
  readonly json?: boolean
  readonly server?: string
  readonly site?: string
  readonly debug?: boolean
}

export async function readAll(stream: Readable): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(Buffer.from(chunk as Uint8Array))
  return Buffer.concat(chunks).toString('utf8')
}
