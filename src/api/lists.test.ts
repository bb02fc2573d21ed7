import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { operator } from '../control/testing.ts'
import { ApiClient } from './client.ts'
import { NodePage, ProblemReply } from './schemas.ts'
import { type TestServer, startTestServer } from './testing.ts'

const IN_ORDER = 'gpu1 gpu2 gpu10 login n1 n2 n3 n4 n5 n6 n7 n8 n9 n10 n11 n12 r1n01 r1n02 r2n01 r2n02'.split(' ')

let server: TestServer
beforeAll(async () => {
  server = await startTestServer()
  const { site, control } = server
  await site.write('groups/gpu.yaml', 'groups: [compute]\n')
  await site.write('groups/rack-1.yaml', '{}\n')
  await site.write('groups/unused.yaml', '{}\n')
  await site.write(
    'nodes.yaml',
    `r[1-2]n[01-02]: { groups: [rack-1] }\nn[1-12]: { groups: [compute] }\nlogin: {}\ngpu[1-2,10]: { groups: [gpu] }\n`,
  )
  await site.write('clusters/prod.yaml', 'nodes: n[1-10],gpu[1-2],login\n')
  await site.write('clusters/test.yaml', 'nodes: n[11-12],gpu10,r[1-2]n[01-02]\n')
  await site.commit('Nodes of all sorts')
  await control.apply(operator)
})
afterAll(() => server[Symbol.asyncDispose]())

async function page(query: Record<string, string>): Promise<{ names: string[]; next: string | null }> {
  const reply = await server.root('GET', `/api/v1/nodes?${new URLSearchParams(query)}`)
  expect(reply.status).toBe(200)
  const { items, next } = NodePage.parse(reply.body)
  return { names: items.map(item => item.name), next }
}

async function allPages(query: Record<string, string>): Promise<string[][]> {
  const pages: string[][] = []
  let after: string | null = null
  do {
    const { names, next } = await page({ ...query, ...(after !== null && { after }) })
    pages.push(names)
    after = next
  } while (after !== null)
  return pages
}

describe('a list of nodes', () => {
  it('is in natural order', async () => {
    expect(await page({})).toEqual({ names: IN_ORDER, next: null })
  })

  it.for([1, 2, 3, 7, 19, 20, 21, 1000])('gives each node exactly once, in pages of %i', async limit => {
    const pages = await allPages({ limit: String(limit) })
    expect(pages.flat()).toEqual(IN_ORDER)
    expect(pages.map(names => names.length).slice(0, -1)).toEqual(Array(pages.length - 1).fill(limit))
    expect(pages).toHaveLength(Math.ceil(IN_ORDER.length / limit))
  })

  it('goes on after a name that is not there (any more)', async () => {
    expect(await page({ after: 'n5-gone', limit: '2' })).toMatchObject({ names: ['r1n01', 'r1n02'] })
    expect(await page({ after: 'gpu9', limit: '2' })).toEqual({ names: ['gpu10', 'login'], next: 'login' })
    expect(await page({ after: 'zzz' })).toEqual({ names: [], next: null })
    expect(await page({ after: '' })).toEqual({ names: IN_ORDER, next: null })
    expect(await page({ after: 'r2n02' })).toEqual({ names: [], next: null })
  })

  it('keeps its place while nodes come and go between the pages', async () => {
    await using other = await startTestServer()
    await other.site.write('nodes.yaml', 'n[1-20]: {}\n')
    await other.site.commit('Twenty')
    await other.control.apply(operator)
    const first = NodePage.parse((await other.root('GET', '/api/v1/nodes?limit=10')).body)
    await other.site.write('nodes.yaml', 'n[3-10,12-25]: {}\n')
    await other.site.commit('Others')
    await other.control.apply(operator)
    const second = NodePage.parse((await other.root('GET', `/api/v1/nodes?limit=100&after=${first.next}`)).body)
    expect(first.items.map(item => item.name)).toEqual(Array.from({ length: 10 }, (_, index) => `n${index + 1}`))
    expect(second.items.map(item => item.name)).toEqual(Array.from({ length: 14 }, (_, index) => `n${index + 12}`))
  })

  it.for([
    ['n[1-3]', ['n1', 'n2', 'n3']],
    ['n[1-12]!n[2-11]', ['n1', 'n12']],
    ['n[8-99]', ['n8', 'n9', 'n10', 'n11', 'n12']],
    ['login,gpu1', ['gpu1', 'login']],
    ['r[1-2]n01', ['r1n01', 'r2n01']],
    ['@gpu', ['gpu1', 'gpu2', 'gpu10']],
    ['@compute&gpu*', ['gpu1', 'gpu2', 'gpu10']],
    ['@compute!@gpu&n[1-2]', ['n1', 'n2']],
    ['@rack-1', ['r1n01', 'r1n02', 'r2n01', 'r2n02']],
    ['@cluster:test', ['gpu10', 'n11', 'n12', 'r1n01', 'r1n02', 'r2n01', 'r2n02']],
    ['@cluster:prod&@gpu', ['gpu1', 'gpu2']],
    ['@all', IN_ORDER],
    ['@all!@cluster:prod!@cluster:test', []],
    ['nobody[1-5]', []],
    ['', []],
  ] as const)('of %s', async ([nodes, names]) => {
    expect(await page({ nodes })).toEqual({ names, next: null })
    expect((await allPages({ nodes, limit: '2' })).flat()).toEqual(names)
  })

  it.for(['n[1-', 'n[3-1]', '[', '!n1', 'n1!', '@', 'n1;rm', 'n[1-3', 'n 1]', '@all@all', '\0'])(
    'of %j, which is no node set, is refused with NODESET_INVALID',
    async nodes => {
      const reply = await server.root('GET', `/api/v1/nodes?${new URLSearchParams({ nodes })}`)
      const problem = ProblemReply.safeParse(reply.body)
      expect({ status: reply.status, code: problem.data?.code }).toEqual({ status: 400, code: 'NODESET_INVALID' })
      expect(problem.data?.hint).toContain('node sets look like')
    },
  )

  it.for(['@nope', '@cluster:nope', '@cluster:', 'n1,@nope'])(
    'of %s is refused, because no node is in that group',
    async nodes => {
      const reply = await server.root('GET', `/api/v1/nodes?${new URLSearchParams({ nodes })}`)
      expect({ status: reply.status, code: ProblemReply.parse(reply.body).code }).toEqual({
        status: 404,
        code: 'GROUP_UNKNOWN',
      })
    },
  )

  it('can be walked with the client', async () => {
    const pages = new ApiClient({ server: server.socket }).pages<{ name: string }>('/api/v1/nodes', { limit: 6 })
    const names: string[][] = []
    for await (const items of pages) names.push(items.map(item => item.name))
    expect(names.map(items => items.length)).toEqual([6, 6, 6, 2])
    expect(names.flat()).toEqual(IN_ORDER)
  })
})
