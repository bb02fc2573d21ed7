import { against, type Figure } from '../figure.ts'
import { temporaryDir } from '../world.ts'
import { Pinned, LOAD_CORE, SERVER_CORE } from './pinned.ts'
import type { AskSkills } from './programs/ask.ts'
import type { PlainSkills } from './programs/plain.ts'
import type { ServerSkills } from './programs/server.ts'

export async function* scriptFigures(): AsyncGenerator<Figure> {
  await using dir = await temporaryDir()
  await using load = await Pinned.start<AskSkills>('ask', LOAD_CORE)
  for (const role of ['boot', 'all'] as const) {
    await using server = await Pinned.start<ServerSkills>('server', SERVER_CORE)
    const url = await server.ask('start', { dir: `${dir.path}`, nodes: 20_000, role })
    for (let i = 0; i < 3; i++) {
      const b = await server.ask('usage')
      const r = await load.ask('ask', { url, nodes: 20_000, atOnce: 64, requests: 20_000 })
      const a = await server.ask('usage')
      console.log(role, r, ((a.cpu - b.cpu) / 20_000) * 1e6, 'us', a.commits - b.commits, a.megabytes)
    }
  }
  await using server = await Pinned.start<PlainSkills>('plain', SERVER_CORE)
  const url = await server.ask('start', '#!ipxe\n' + 'x'.repeat(2500))
  for (let i = 0; i < 3; i++) {
    const b = await server.ask('usage')
    const r = await load.ask('ask', { url, nodes: 20_000, atOnce: 64, requests: 20_000 })
    const a = await server.ask('usage')
    console.log('plain', r, ((a.cpu - b.cpu) / 20_000) * 1e6, 'us')
  }
}
