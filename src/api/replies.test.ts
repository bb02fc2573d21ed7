import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { encrypt, generateKey } from '../lib/age.ts'
import { report } from '../state/observed.ts'
import {
  AppliedReply,
  CreatedToken,
  EditReply,
  EventPage,
  ExplanationReply,
  GenerationList,
  GroupList,
  NodeDetail,
  NodePage,
  PlanReply,
  StatusReply,
  TokenList,
} from './schemas.ts'
import { type TestServer, follow, startTestServer } from './testing.ts'

let server: TestServer
beforeAll(async () => {
  server = await startTestServer()
})
afterAll(() => server[Symbol.asyncDispose]())

const Explanations = z.strictObject({ items: z.array(ExplanationReply) })
const Ok = z.strictObject({ status: z.literal('ok') })

/** Asks as root, and takes a reply only if it is exactly what its schema says. */
async function ok<Schema extends z.ZodType>(
  schema: Schema,
  method: string,
  path: string,
  body?: unknown,
): Promise<z.infer<Schema>> {
  const reply = await server.root(method, path, body)
  expect({ path, status: reply.status, type: reply.headers['content-type'] }).toEqual({
    path,
    status: 200,
    type: expect.stringMatching(/^application\/json/) as unknown,
  })
  return schema.parse(reply.body)
}

describe('every reply is what its schema says', () => {
  it('before anything was applied', async () => {
    await ok(Ok, 'GET', '/healthz')
    await ok(Ok, 'GET', '/readyz')
    expect(await ok(StatusReply, 'GET', '/api/v1/status')).toEqual({
      version: '1.2.3-test',
      site: server.site.dir,
      revision: 0,
      nodes: 0,
      generation: null,
      role: 'admin',
    })
    expect(await ok(NodePage, 'GET', '/api/v1/nodes')).toEqual({ items: [], next: null })
    expect(await ok(GroupList, 'GET', '/api/v1/groups')).toEqual({ items: [] })
    expect(await ok(GenerationList, 'GET', '/api/v1/site/generations')).toEqual({ items: [] })
    expect(await ok(EventPage, 'GET', '/api/v1/events')).toEqual({ items: [], next: null })
    expect(await ok(TokenList, 'GET', '/api/v1/tokens')).toEqual({ items: [] })
  })

  it('on the way from a plan through edits and back', async () => {
    const plan = await ok(PlanReply, 'GET', '/api/v1/site/plan')
    expect(plan).toMatchObject({ generation: 0, dirty: [], diff: { added: 'n[001-004]', nodes: 4 } })
    const { tree, generation } = plan
    const first = await ok(AppliedReply, 'POST', '/api/v1/site/apply', { expect: { tree, generation } })
    expect(first).toMatchObject({
      generation: { number: 1, appliedBy: 'root', tree },
      unchanged: false,
      diff: plan.diff,
    })
    expect((await ok(AppliedReply, 'POST', '/api/v1/site/apply', {})).unchanged).toBe(true)

    await ok(EditReply, 'POST', '/api/v1/groups', { name: 'gpu', set: { 'vars.gpus': 4, groups: ['compute'] } })
    await ok(EditReply, 'PATCH', '/api/v1/groups/gpu', { set: { 'boot.args': ['nouveau.blacklist=1'] } })
    const added = { nodes: 'gpu[1-2]', set: { groups: ['gpu'] }, message: 'Two nodes with GPUs' }
    const edit = await ok(EditReply, 'POST', '/api/v1/nodes', added)
    expect(edit.files).toEqual(['nodes.yaml'])
    expect(await server.site.git('log', '-1', '--format=%H %an %s')).toBe(`${edit.commit} root Two nodes with GPUs`)
    await ok(EditReply, 'PATCH', '/api/v1/nodes', {
      nodes: 'gpu2',
      set: { 'boot.root': 'disk', 'vars.rack': { u: [1, null] } },
    })
    await ok(EditReply, 'DELETE', '/api/v1/nodes', { nodes: 'n004' })
    const dirty = await ok(PlanReply, 'GET', '/api/v1/site/plan?allowDirty=false')
    expect(dirty.diff).toMatchObject({ added: 'gpu[1-2]', removed: 'n004', nodes: 3 })
    await ok(AppliedReply, 'POST', '/api/v1/site/apply', { allowDirty: true })

    await report(
      server.store,
      'gpu1',
      { power: { value: 'on' }, health: { value: 'bad', reason: 'hot' } },
      { actor: 'bmc' },
      new Date(),
    )
    const page = await ok(NodePage, 'GET', '/api/v1/nodes')
    expect(page.items.map(item => [item.name, item.groups, item.observed.power?.value])).toEqual([
      ['gpu1', ['compute', 'gpu'], 'on'],
      ['gpu2', ['compute', 'gpu'], undefined],
      ['n001', ['compute'], undefined],
      ['n002', ['compute'], undefined],
      ['n003', ['compute'], undefined],
    ])
    const detail = await ok(NodeDetail, 'GET', '/api/v1/nodes/gpu2')
    expect(detail.desired).toMatchObject({ boot: { root: 'disk' }, vars: { gpus: 4, rack: { u: [1, null] } } })
    const { items } = await ok(Explanations, 'GET', '/api/v1/nodes/gpu2/explain?path=boot.root')
    expect(items).toMatchObject([{ path: 'boot.root', value: 'disk', from: { file: 'nodes.yaml' } }])
    expect(items[0]?.overrides).toMatchObject([{ file: 'site.yaml', value: 'ram' }])
    expect((await ok(Explanations, 'GET', '/api/v1/nodes/n001/explain')).items.length).toBeGreaterThan(5)
    expect(await ok(GroupList, 'GET', '/api/v1/groups')).toEqual({
      items: [
        { name: 'compute', nodes: 'gpu[1-2],n[001-003]', count: 5 },
        { name: 'gpu', nodes: 'gpu[1-2]', count: 2 },
      ],
    })

    expect(await ok(AppliedReply, 'POST', '/api/v1/site/revert', { generation: 1 })).toMatchObject({
      generation: { number: 3, subject: 'Revert to generation 1' },
      diff: { added: 'n004', removed: 'gpu[1-2]', nodes: 3 },
      unchanged: false,
    })
    expect((await ok(GenerationList, 'GET', '/api/v1/site/generations')).items.map(one => one.number)).toEqual([
      3, 2, 1,
    ])
    expect(await ok(StatusReply, 'GET', '/api/v1/status')).toMatchObject({ nodes: 4, generation: { number: 3 } })
  })

  it('for groups and tokens that come and go, and for events', async () => {
    await ok(EditReply, 'POST', '/api/v1/groups', { name: 'empty' })
    const removed = await ok(EditReply, 'DELETE', '/api/v1/groups/empty', { message: 'No longer needed' })
    expect(removed.files).toEqual(['groups/empty.yaml'])
    expect(await server.site.git('log', '-1', '--format=%s')).toBe('No longer needed')
    expect((await server.root('DELETE', '/api/v1/groups/compute')).body).toMatchObject({ code: 'GROUP_IN_USE' })

    const made = await ok(CreatedToken, 'POST', '/api/v1/tokens', { name: 'grafana', role: 'viewer', seconds: 60 })
    const tokens = await ok(TokenList, 'GET', '/api/v1/tokens')
    expect(tokens.items).toEqual([made.info])
    expect(made.info).toMatchObject({ name: 'grafana', role: 'viewer', createdBy: 'root' })
    await ok(z.strictObject({}), 'DELETE', `/api/v1/tokens/${made.info.id}`)

    const events = await ok(EventPage, 'GET', '/api/v1/events')
    expect(events.items.map(event => event.revision)).toEqual(events.items.map((_, index) => index + 1))
    expect(new Set(events.items.map(event => event.kind))).toEqual(
      new Set(['site.applied', 'site.edited', 'node.observed', 'token.created', 'token.revoked']),
    )
    // What streams is what the pages hold.
    const follower = await follow(server.socket, '/api/v1/events/stream?after=0')
    expect((await follower.received(events.items.length)).map(event => event.data)).toEqual(events.items)
    follower.leave()
  })

  it('for a backup, which is a file of SQLite', async () => {
    const reply = await server.root('POST', '/api/v1/backup')
    expect(reply.status).toBe(200)
    expect(reply.headers['content-type']).toBe('application/octet-stream')
    expect(Number(reply.headers['content-length'])).toBeGreaterThan(1000)
    expect(reply.text.startsWith('SQLite format 3\0')).toBe(true)
  })
})

/** As a value in YAML, six deep. */
const secret = (text: string): string => `!age |\n${text.trimEnd().replaceAll(/^/gm, '      ')}\n`

describe('a secret', () => {
  it('never leaves through the API, not even encrypted', async () => {
    await using other = await startTestServer()
    const { recipient } = await generateKey()
    const armored = await encrypt('correct horse', [recipient])
    await other.site.write(
      'groups/compute.yaml',
      `bmc:\n  password: ${secret(armored)}vars:\n  inner:\n    key: ${secret(armored)}`,
    )
    await other.site.commit('A secret')
    const replies = [await other.root('GET', '/api/v1/site/plan'), await other.root('POST', '/api/v1/site/apply', {})]
    await other.site.write(
      'groups/compute.yaml',
      `bmc:\n  password: ${secret(await encrypt('battery staple', [recipient]))}`,
    )
    await other.site.commit('Another secret')
    for (const [method, path] of [
      ['GET', '/api/v1/nodes'],
      ['GET', '/api/v1/nodes/n001'],
      ['GET', '/api/v1/nodes/n001/explain'],
      ['GET', '/api/v1/nodes/n001/explain?path=bmc.password'],
      ['GET', '/api/v1/groups'],
      ['GET', '/api/v1/site/plan'],
      ['GET', '/api/v1/events'],
    ] as const)
      replies.push(await other.root(method, path))
    expect(replies.map(reply => reply.status)).toEqual(replies.map(() => 200))
    const said = replies.map(reply => reply.text).join('\n')
    expect(said).not.toMatch(/AGE ENCRYPTED|correct horse|\$secret/)
    const lines = armored.split('\n').filter(line => line.length > 20 && !line.startsWith('-'))
    expect(lines.length).toBeGreaterThan(1)
    for (const line of lines) expect(said).not.toContain(line)
    expect(said).toContain('(secret)')
    expect(said).toContain('secret changed')
  })
})

type Json = Readonly<Record<string, unknown>>

const document = async (): Promise<Json> => (await server.root('GET', '/api/v1/openapi.json')).body as Json

describe('the OpenAPI document', () => {
  const Operation = z.looseObject({
    summary: z.string().min(3),
    tags: z.array(z.string()).min(1),
    parameters: z
      .array(
        z.looseObject({
          name: z.string(),
          in: z.enum(['path', 'query', 'header']),
          schema: z.record(z.string(), z.unknown()),
        }),
      )
      .optional(),
    requestBody: z
      .looseObject({ content: z.record(z.string(), z.looseObject({ schema: z.record(z.string(), z.unknown()) })) })
      .optional(),
    responses: z
      .record(z.string().regex(/^[1-5]\d\d$|^default$/), z.looseObject({ description: z.string() }))
      .refine(responses => Object.keys(responses).length > 0, 'has no responses'),
  })

  it('is OpenAPI 3.1, and each operation says what it takes and gives', async () => {
    const { openapi, info, paths, components, security } = await document()
    expect(openapi).toMatch(/^3\.1\.\d+$/)
    expect(info).toMatchObject({ title: 'Muster', version: '1.2.3-test' })
    expect(security).toEqual([{ token: [] }])
    expect(components).toMatchObject({ securitySchemes: { token: { type: 'http', scheme: 'bearer' } } })
    const operations = Object.entries(paths as Record<string, Json>)
    expect(operations.length).toBeGreaterThan(15)
    for (const [path, methods] of operations) {
      expect(path).toMatch(/^\/[\w/{}.-]+$/)
      for (const [method, operation] of Object.entries(methods)) {
        const parsed = Operation.safeParse(operation)
        expect({ path, method, problem: parsed.error?.message }).toEqual({ path, method, problem: undefined })
        const named = (parsed.data?.parameters ?? []).filter(one => one.in === 'path').map(one => one.name)
        expect(named).toEqual([...path.matchAll(/\{(\w+)\}/g)].map(match => match[1]))
        expect(method === 'get' ? parsed.data?.requestBody : undefined).toBeUndefined()
      }
    }
  })

  it('refers only to what it contains', async () => {
    const whole = await document()
    const broken = [...references(whole)].filter(ref => resolve(whole, ref) === undefined)
    expect(broken).toEqual([])
  })

  it('says that only the health checks need no token', async () => {
    const { paths } = await document()
    const open = Object.entries(paths as Record<string, Record<string, Json>>)
      .filter(([, methods]) =>
        Object.values(methods).some(one => Array.isArray(one['security']) && one['security'].length === 0),
      )
      .map(([path]) => path)
    expect(open).toEqual(['/healthz', '/readyz'])
  })

  it('describes the replies as they are', async () => {
    const { paths } = await document()
    const { get } = (paths as Record<string, { get: Json }>)['/api/v1/nodes/{name}'] ?? {}
    expect(get?.['responses']).toMatchObject({
      200: {
        content: {
          'application/json': { schema: { type: 'object', required: ['name', 'desired', 'observed', 'revision'] } },
        },
      },
    })
  })
})

function* references(value: unknown): Generator<string> {
  if (Array.isArray(value)) for (const item of value) yield* references(item)
  else if (typeof value === 'object' && value !== null)
    for (const [key, item] of Object.entries(value)) {
      if (key === '$ref' && typeof item === 'string') yield item
      else yield* references(item)
    }
}

function resolve(whole: Json, ref: string): unknown {
  if (!ref.startsWith('#/')) return undefined
  const keys = ref
    .slice(2)
    .split('/')
    .map(key => decodeURIComponent(key).replaceAll('~1', '/').replaceAll('~0', '~'))
  return keys.reduce<unknown>((found, key) => (found as Json | undefined)?.[key], whole)
}
