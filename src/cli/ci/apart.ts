import { Writable } from 'node:stream'
import type { Io } from '../io.ts'

/** A world outside in which what is said is kept, until it can be printed in one piece. */
export interface Apart {
  readonly io: Io
  readonly print: () => void
}

export function apart(io: Io): Apart {
  const said: Buffer[] = []
  const stderr = new Writable({
    write(chunk: Buffer, _, done) {
      said.push(chunk)
      done()
    },
  })
  return {
    io: { ...io, stderr: Object.assign(stderr, { isTTY: false }) },
    print: () => void io.stderr.write(Buffer.concat(said.splice(0))),
  }
}
