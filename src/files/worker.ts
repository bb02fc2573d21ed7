/** Makes the lists of nodes in a thread of its own: nodes are answered meanwhile, however long a template takes. */
import { once } from 'node:events'
import { setPriority } from 'node:os'
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { decrypt } from '../lib/age.ts'
import { MusterError, messageOf } from '../lib/errors.ts'
import type { Repository } from '../site/git.ts'
import { gitSource } from '../site/git-source.ts'
import { type Site, openSite } from '../site/site.ts'
import { ListMaker } from './maker.ts'
import { type Answer, type Order, pack } from './wire.ts'

export interface WorkerInput {
  readonly repo: Repository
  readonly identities: readonly string[]
}

const { repo, identities } = workerData as WorkerInput
const port = parentPort as MessagePort

const maker = new ListMaker(async armored => {
  if (identities.length === 0)
    throw new MusterError('SECRET_KEY_MISSING', 'it holds a secret, and the server has no key to open it (--key)')
  return decrypt(armored, identities)
})
let site: Site | undefined

const answer = (message: Answer, handed: ArrayBuffer[] = []): void => port.postMessage(message, handed)

async function make({ tree }: Order): Promise<void> {
  const source = gitSource(repo, tree)
  site = await openSite(source, site)
  const updates = maker.update(site, source)
  for (;;) {
    const next = await updates.next()
    if (next.done === true) return answer({ kind: 'done', ...next.value })
    const { batch, handed } = pack(next.value)
    const taken = once(port, 'message')
    answer({ kind: 'batch', batch }, handed)
    await taken
  }
}

for (;;) {
  const [order] = (await once(port, 'message')) as [Order]
  await make(order).catch((error: unknown) => answer({ kind: 'failed', reason: messageOf(error) }))
  globalThis.gc?.()
  // The first time nodes wait for it; from then on they go before. On Linux this is about the calling thread alone.
  setPriority(0, 10)
}
