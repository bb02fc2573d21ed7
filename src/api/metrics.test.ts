import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { operator } from '../control/testing.ts'
import { type TestServer, follow, startTestServer } from './testing.ts'

interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

interface Family {
  help?: string
  type?: string
  readonly samples: Sample[]
}

/** Prometheus' text format 0.0.4, strictly: a line that is none of what is allowed is an error. */
function parse(text: string): Map<string, Family> {
  expect(text.endsWith('\n')).toBe(true)
  const families = new Map<string, Family>()
  const family = (name: string): Family => {
    const found = families.get(name) ?? { samples: [] }
    families.set(name, found)
    return found
  }
  for (const line of text.split('\n').filter(one => one !== '')) {
    const comment = /^# (HELP|TYPE) ([a-zA-Z_:][\w:]*) (.+)$/.exec(line)
    if (comment !== null) {
      const [, what, name = '', said = ''] = comment
      if (what === 'HELP') family(name).help = said
      else family(name).type = said
      continue
    }
    const sample = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (-?[\d.]+(?:e[+-]?\d+)?|nan|[+-]inf)$/i.exec(line)
    if (sample === null) throw new Error(`not a line of Prometheus' text format: ${line}`)
    const [, name = '', labels = '', value] = sample
    const pairs = [...labels.matchAll(/([a-zA-Z_]\w*)="((?:[^"\\\n]|\\["\\n])*)",?/g)]
    expect(pairs.map(pair => pair[0]).join('')).toBe(labels)
    const base = families.has(name) ? name : name.replace(/_(bucket|sum|count)$/, '')
    family(base).samples.push({
      name,
      labels: Object.fromEntries(pairs.map(([, key, text]) => [key, text])) as Record<string, string>,
      value: Number(value?.replace(/inf/i, 'Infinity')),
    })
  }
  return families
}

let server: TestServer
beforeAll(async () => {
  server = await startTestServer()
})
afterAll(() => server[Symbol.asyncDispose]())

const metrics = async (): Promise<Map<string, Family>> => parse((await server.root('GET', '/metrics')).text)

async function valueOf(name: string, labels: Readonly<Record<string, string>> = {}): Promise<number | undefined> {
  const family = (await metrics()).get(name) ?? (await metrics()).get(name.replace(/_(bucket|sum|count)$/, ''))
  return family?.samples.find(
    sample => sample.name === name && Object.entries(labels).every(([key, value]) => sample.labels[key] === value),
  )?.value
}

const requests = (method: string, route: string, status: number): Promise<number | undefined> =>
  valueOf('muster_http_requests_total', { method, route, status: String(status) })

describe('metrics', () => {
  it('are in the text format of Prometheus, each with its help and type', async () => {
    const reply = await server.root('GET', '/metrics')
    expect(reply.headers['content-type']).toMatch(/^text\/plain; version=0\.0\.4/)
    const families = parse((await server.root('GET', '/metrics')).text)
    for (const [name, { help, type, samples }] of families) {
      expect({ name, help, type }).toEqual({
        name,
        help: expect.stringMatching(/./) as unknown,
        type: expect.stringMatching(/^(counter|gauge|histogram|summary)$/) as unknown,
      })
      const keys = samples.map(sample => JSON.stringify([sample.name, sample.labels]))
      expect([...new Set(keys)]).toEqual(keys)
    }
    expect(families.has('process_cpu_seconds_total')).toBe(true)
    expect(families.has('process_resident_memory_bytes')).toBe(true)
  })

  it('count requests by route, not by path, and errors among them', async () => {
    for (const name of ['n001', 'n002', '../x', 'y"z\\'])
      await server.root('GET', `/api/v1/nodes/${encodeURIComponent(name)}`)
    expect(await requests('GET', '/api/v1/nodes/:name', 404)).toBe(4)
    expect(await valueOf('muster_http_errors_total', { route: '/api/v1/nodes/:name', status: '404' })).toBe(4)

    await server.control.apply(operator)
    for (const name of ['n001', 'n002']) await server.root('GET', `/api/v1/nodes/${name}`)
    expect(await requests('GET', '/api/v1/nodes/:name', 200)).toBe(2)
    expect(await valueOf('muster_http_errors_total', { route: '/api/v1/nodes/:name', status: '200' })).toBeUndefined()
    expect(await valueOf('muster_http_request_seconds_count', { route: '/api/v1/nodes/:name' })).toBe(6)
  })

  it('count those that were refused, whatever they asked for, without a series for each', async () => {
    for (let number = 0; number < 50; number++) await server.ask('GET', `/random/${number}`)
    await server.ask('GET', '/api/v1/tokens')
    expect(await requests('GET', '/api/v1/tokens', 401)).toBe(1)
    expect(await requests('GET', 'unknown', 401)).toBe(50)
    const text = (await server.root('GET', '/metrics')).text
    expect(text).not.toContain('random')
  })

  it('show how long requests took, per route, in a histogram that adds up', async () => {
    for (let count = 0; count < 5; count++) await server.root('GET', '/api/v1/groups')
    const family = (await metrics()).get('muster_http_request_seconds')
    expect(family?.type).toBe('histogram')
    const mine = family?.samples.filter(sample => sample.labels['route'] === '/api/v1/groups') ?? []
    const buckets = mine.filter(sample => sample.name.endsWith('_bucket'))
    expect(buckets.map(sample => Number(sample.labels['le']?.replace('+Inf', 'Infinity')))).toEqual([
      0.001,
      0.0025,
      0.005,
      0.01,
      0.025,
      0.05,
      0.1,
      0.25,
      0.5,
      1,
      2.5,
      5,
      10,
      Infinity,
    ])
    const values = buckets.map(sample => sample.value)
    expect(values).toEqual(values.toSorted((a, b) => a - b))
    expect(values.at(-1)).toBe(5)
    const sum = mine.find(sample => sample.name.endsWith('_sum'))?.value ?? -1
    expect(sum).toBeGreaterThan(0)
    expect(sum).toBeLessThan(10)
  })

  it('show nodes, revision and generation as they are', async () => {
    await server.control.apply(operator)
    await server.site.write('nodes.yaml', 'n[1-7]: {}\n')
    await server.site.commit('Seven')
    await server.control.apply(operator)
    expect(await valueOf('muster_nodes')).toBe(7)
    expect(await valueOf('muster_generation')).toBe(2)
    expect(await valueOf('muster_revision')).toBe(await server.store.revision())
  })

  it('count a stream of events when it has ended', async () => {
    const follower = await follow(server.socket, '/api/v1/events/stream')
    const before = (await requests('GET', '/api/v1/events/stream', 200)) ?? 0
    follower.leave()
    await follower.ended
    await expect.poll(() => requests('GET', '/api/v1/events/stream', 200), { timeout: 2000 }).toBe(before + 1)
  })

  it('of two servers in one process do not mix', async () => {
    await using other = await startTestServer()
    const text = (await other.root('GET', '/metrics')).text
    expect(text).not.toContain('route="/api/v1/groups"')
  })
})
