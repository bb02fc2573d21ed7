import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { pino } from 'pino'
import { Artefacts } from '../../../src/boot/artefacts.ts'
import { createBootHttp } from '../../../src/boot/http.ts'
import { answerWith } from '../skills.ts'

export interface FilesStart {
  /** Files named by their digest. */
  readonly dir: string
  readonly sha256: string
  /** Bytes that may be kept in memory. */
  readonly budget: number
}

/** Our server of artefacts; the one to be measured is in memory, or found right, before anybody asks. */
async function start({ dir, sha256, budget }: FilesStart): Promise<string> {
  const logger = pino({ level: 'error' })
  const artefacts = new Artefacts({ pathOf: digest => join(dir, digest) }, { logger, budget })
  await artefacts.warm(sha256)
  const server = createBootHttp({
    logger,
    artefacts,
    index: () => undefined,
    servers: () => ['http://127.0.0.1'],
    tell: () => {},
    heard: () => {},
    loader: async () => undefined,
    discoveryExtras: () => undefined,
  })
  server.listen({ host: '127.0.0.1', port: 0, backlog: 4096 })
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/blob/${sha256}`
}

const skills = { start }
export type FilesSkills = typeof skills
answerWith(skills)
