import { type FSWatcher, watch } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { AppliedReply, GenerationList, NodeDetail } from '../../src/api/schemas.ts'
import type { Reply } from '../../src/api/testing.ts'
import { type TestSite, makeSite } from '../../src/control/testing.ts'
import type { Generation } from '../../src/control/generations.ts'
import { type Muster, folder, startMuster } from './muster.ts'

const ROUNDS = 15
const NODES = 12

/** Every node gets the number, so that half an application would show. */
async function change(site: TestSite, number: number): Promise<void> {
  await site.write('groups/compute.yaml', `vars: { number: ${number} }\n`)
  await site.commit(`change ${number}`)
}

/** The number that all nodes have. */
async function numberInForce(server: Muster): Promise<number> {
  const found = new Set<number>()
  for (let index = 1; index <= NODES; index++) {
    const reply = await server.root('GET', `/api/v1/nodes/n${String(index).padStart(3, '0')}`)
    found.add((NodeDetail.parse(reply.body).desired['vars'] as { number: number }).number)
  }
  expect(found.size, 'all nodes have the same number').toBe(1)
  return [...found][0] ?? 0
}

async function generations(server: Muster): Promise<Generation[]> {
  const { code, stdout } = await server.cli('site', 'log', '--limit', '10000', '--output', 'json')
  expect(code).toBe(0)
  return GenerationList.parse({ items: JSON.parse(stdout) as unknown }).items
}

/** When to kill: each waits for something that an application does, and for nothing else. */
const moments: readonly ((site: TestSite, data: string) => { readonly come: Promise<unknown>; stop(): void })[] = [
  // As soon as the request is on its way.
  () => ({ come: Promise.resolve(), stop: () => {} }),
  // git has the name that keeps the new generation; the store does not know it yet.
  site => whenTouched(join(site.dir, '.git/refs/muster'), name => name.startsWith('generation-')),
  // The store writes.
  (_, data) => whenTouched(data, name => name.endsWith('-wal')),
  // Somewhere in between.
  () => {
    const turns = Math.floor(Math.random() * 20_000)
    const stopped = new AbortController()
    const come = (async () => {
      for (let turn = 0; turn < turns && !stopped.signal.aborted; turn++) await setImmediate()
    })()
    return { come, stop: () => stopped.abort() }
  },
]

function whenTouched(dir: string, matches: (name: string) => boolean): { come: Promise<void>; stop(): void } {
  let watcher: FSWatcher | undefined
  const come = new Promise<void>(resolve => {
    watcher = watch(dir, (_, name) => {
      if (name !== null && matches(name)) resolve()
    })
  })
  return { come, stop: () => watcher?.close() }
}

describe('a server that is killed again and again while the site is applied', () => {
  it(`has lost nothing it acknowledged and left nothing half done, ${ROUNDS} times`, { timeout: 180_000 }, async () => {
    await using site = await makeSite()
    await site.write('nodes.yaml', `n[001-0${NODES}]: { groups: [compute] }\n`)
    await using place = await folder()
    const data = join(place.path, 'data')
    const acknowledged = new Map<number, Generation>()
    let number = 0
    const apply = async (server: Muster): Promise<void> => {
      const reply = await server.root('POST', '/api/v1/site/apply', {})
      expect(reply.status).toBe(200)
      const { generation } = AppliedReply.parse(reply.body)
      acknowledged.set(generation.number, generation)
    }

    let survivedInFlight = 0
    for (let round = 0; round < ROUNDS; round++) {
      {
        await using server = await startMuster({ site: site.dir, data })
        for (let times = 1 + Math.floor(Math.random() * 3); times > 0; times--) {
          await change(site, ++number)
          await apply(server)
        }
        expect(await numberInForce(server)).toBe(number)
        await change(site, ++number)
        const moment = moments[round % moments.length]?.(site, data)
        const inFlight = apply(server).then(
          () => 'acknowledged' as const,
          () => 'unknown' as const,
        )
        await Promise.race([moment?.come, inFlight])
        moment?.stop()
        await server.end('SIGKILL')
        const outcome = await inFlight
        if (outcome === 'acknowledged') survivedInFlight++
      }

      await using server = await startMuster({ site: site.dir, data })
      const log = await generations(server)
      expect(log.map(one => one.number)).toEqual(log.map((_, index) => log.length - index))
      for (const [generation, said] of acknowledged) expect(log.find(one => one.number === generation)).toEqual(said)
      const newest = Math.max(...acknowledged.keys())
      expect([newest, newest + 1]).toContain(log.length)

      // What is in force is the newest generation: the last acknowledged one, or the one that was under way.
      const inForce = await numberInForce(server)
      expect(log[0]?.subject).toBe(`change ${inForce}`)
      expect(inForce).toBe(
        log.length === newest ? Number(acknowledged.get(newest)?.subject.slice('change '.length)) : number,
      )

      const refs = (await site.git('for-each-ref', '--format=%(refname:lstrip=2) %(objectname)', 'refs/muster')).split(
        '\n',
      )
      for (const one of log) expect(refs).toContain(`generation-${one.number} ${one.commit}`)
      expect(await site.git('status', '--porcelain')).toBe('')

      await apply(server)
      expect(await numberInForce(server)).toBe(number)
      await server.end('SIGKILL')
    }
    expect(survivedInFlight, 'some were killed before they could answer').toBeLessThan(ROUNDS)
  })
})

const edit = (server: Muster, value: number): Promise<Reply> =>
  server.root('PATCH', '/api/v1/nodes', { nodes: 'n001', set: { 'vars.number': value } })

describe('a server that is killed in the middle of an edit', () => {
  it.for([
    ['the new file is being written', '', 'nodes.yaml.muster-new'],
    ['the new file is in place and not yet committed', '', 'nodes.yaml'],
    ['git has just begun', '.git', 'index.lock'],
  ] as const)('can be used again at once: %s', async ([, dir, name]) => {
    await using site = await makeSite()
    await using place = await folder()
    const data = join(place.path, 'data')
    const done: string[] = []
    {
      await using server = await startMuster({ site: site.dir, data })
      const reply = await edit(server, 1)
      expect(reply.status).toBe(200)
      done.push((reply.body as { commit: string }).commit)
      const moment = whenTouched(join(site.dir, dir), touched => touched === name)
      const inFlight = edit(server, 2).catch(() => undefined)
      await moment.come
      moment.stop()
      await server.end('SIGKILL')
      await inFlight
    }
    await using server = await startMuster({ site: site.dir, data })
    for (const commit of done) await site.git('merge-base', '--is-ancestor', commit, 'HEAD')
    const next = await edit(server, 3)
    expect({ status: next.status, body: next.body }).toMatchObject({ status: 200 })
    const applied = await server.root('POST', '/api/v1/site/apply', {})
    expect({ status: applied.status, body: applied.body }).toMatchObject({ status: 200 })
    const node = NodeDetail.parse((await server.root('GET', '/api/v1/nodes/n001')).body)
    expect(node.desired['vars']).toEqual({ number: 3 })
  })
})
