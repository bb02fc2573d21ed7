import { mkdtemp, rm } from 'node:fs/promises'
import { request as secureRequest } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { request } from '../api/testing.ts'
import { Authority } from '../ca/authority.ts'
import { until } from '../control/testing.ts'
import { exec } from '../lib/exec.ts'
import type { Sighting } from '../nodes/reports.ts'
import { BootService, type BootServiceOptions } from './service.ts'
import { MAC, boots, indexOf, prov, sha256Of, rootsPort } from './testing.ts'

const SECRET = '5'.repeat(64)
const LIST = Buffer.from('muster-files 1\nend\n')
const index = indexOf({ nodes: [boots('n1', { interfaces: [prov('127.0.0.1', { mac: MAC })] })] })

let dir: string
let authority: Authority
let told: Sighting[]
let elapsed: number
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'muster-service-'))
  authority = await Authority.open(join(dir, 'ca'))
}, 120_000)
afterAll(() => rm(dir, { recursive: true }))
beforeEach(() => {
  told = []
  elapsed = 0
})

const start = (more: Partial<BootServiceOptions> = {}): Promise<BootService> =>
  BootService.start({
    dir: join(dir, 'boot'),
    logger: pino({ enabled: false }),
    blobs: { pathOf: sha256 => join(dir, sha256) },
    send: async ({ sightings }) => void told.push(...sightings),
    listen: { host: '127.0.0.1', port: 0 },
    elapsed: () => elapsed,
    ...more,
  })
const plainly = (service: BootService, method: string, path: string, body?: unknown) => {
  const { hostname: host, port } = new URL(service.urls()[0] ?? '')
  return request({ host, port }, method, path, { body })
}
/** What the kernel of n1 is told by its script. */
const words = async (service: BootService): Promise<Record<string, string>> => {
  const { text } = await plainly(service, 'GET', `/boot/script?mac=${MAC}`)
  const said = [...text.matchAll(/ muster\.(\w+)=(\S+)/g)].map(([, key = '', value = '']) => [key, value])
  return Object.fromEntries(said) as Record<string, string>
}
const ask = (
  ca: string,
  method: string,
  url: string,
  { body, authorization = '' }: { body?: unknown; authorization?: string } = {},
): Promise<{ status: number; text: string }> =>
  new Promise((resolve, reject) => {
    const asRoot = { localPort: rootsPort(), localAddress: '127.0.0.1' }
    const sent = secureRequest(url, { method, ca, agent: false, headers: { authorization }, ...asRoot }, response => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      response.once('end', () => resolve({ status: response.statusCode ?? 0, text }))
    })
    sent.once('error', reject)
    sent.end(body === undefined ? undefined : JSON.stringify(body))
  })
const valueOf = (text: string): string => /=(.+)/.exec(text)?.[1] ?? ''
/** A node that was told this by its script proves who it is; what its heartbeats show then. */
async function letIn({ boot, enrol }: Record<string, string>): Promise<string> {
  const claim = { mac: MAC, boot, claim: sha256Of(SECRET) }
  const { text } = await ask(authority.pem, 'POST', `${enrol}/node/claim`, { body: claim })
  const proof = { mac: MAC, boot, token: valueOf(text), secret: SECRET }
  const proved = await ask(authority.pem, 'POST', `${enrol}/node/credential`, { body: proof })
  return /^beat=(.+)$/m.exec(proved.text)?.[1] ?? ''
}

it('leads a node from its script to its files, over the addresses it was told', async () => {
  const files = { list: () => ({ version: sha256Of(LIST).slice(0, 16), text: LIST }), content: () => undefined }
  await using service = await start({ authority, files })
  service.update(index)
  await service.settled()
  elapsed = 30

  const { boot = '', enrol = '', ca = '', servers } = await words(service)
  expect(servers).toBe(service.urls()[0])
  expect(service.enrolPlan()).toEqual({ urls: [enrol], ca })
  expect(boot).toMatch(/^[0-9a-f]{32}$/)
  const { text: pem } = await plainly(service, 'GET', '/ca.pem')
  expect(sha256Of(pem)).toBe(ca)

  const claimed = await ask(pem, 'POST', `${enrol}/node/claim`, { body: { mac: MAC, boot, claim: sha256Of(SECRET) } })
  expect(claimed.status).toBe(200)
  const proof = { mac: MAC, boot, token: valueOf(claimed.text), secret: SECRET }
  const proved = await ask(pem, 'POST', `${enrol}/node/credential`, { body: proof })
  const authorization = `Bearer ${valueOf(proved.text)}`
  expect(await ask(pem, 'GET', `${enrol}/node/files`, { authorization })).toEqual({ status: 200, text: String(LIST) })
  await until('it was told of', () => told.some(({ kind }) => kind === 'enrolled'))

  await service.revoke('n1')
  expect(await ask(pem, 'GET', `${enrol}/node/files`, { authorization })).toMatchObject({ status: 401 })
})

it('lets nobody in as a node that sends heartbeats, and says so', async () => {
  await using service = await start({ authority })
  service.update(index)
  await service.settled()
  elapsed = 30
  const first = await words(service)
  const beat = await letIn(first)
  const body = { boot: first['boot'], mac: MAC, node: 'n1' }
  expect((await plainly(service, 'POST', '/node/heartbeat', body)).status).toBe(403)
  expect((await plainly(service, 'POST', '/node/heartbeat', { ...body, beat })).status).toBe(200)
  const { boot, enrol = '' } = await words(service)
  const claim = { mac: MAC, boot, claim: sha256Of(SECRET) }
  expect(await ask(authority.pem, 'POST', `${enrol}/node/claim`, { body: claim })).toMatchObject({
    status: 403,
    text: expect.stringContaining('error: it is up: a heartbeat of another boot was heard just now\n') as string,
  })
  await until('it was told of', () =>
    told.some(sighting => sighting.kind === 'enrol-refused' && sighting.node === 'n1'),
  )

  // Silent for long enough, it may boot; until it says that it has.
  elapsed = 60
  const ready = { boot, mac: MAC, phase: 'ready' }
  expect((await plainly(service, 'POST', '/node/report', ready)).status).toBe(204)
  expect(await ask(authority.pem, 'POST', `${enrol}/node/claim`, { body: claim })).toMatchObject({
    status: 403,
    text: expect.stringContaining('error: this boot is over: it is ready\n') as string,
  })
})

const bootsSeen = (): (string | undefined)[] =>
  told.flatMap(one => (one.kind === 'phase' && one.node === 'n1' ? [one.boot] : []))

it('hears nothing of a boot that somebody elsewhere makes up for a node that is up', async () => {
  await using service = await start({ authority })
  service.update(index)
  await service.settled()
  elapsed = 30
  const first = await words(service)
  const beat = await letIn(first)
  await plainly(service, 'POST', '/node/heartbeat', { boot: first['boot'], mac: MAC, node: 'n1', beat })
  const paths = [
    `/boot/script?mac=${MAC}`,
    `/boot/step?mac=${MAC}&boot=${'0'.repeat(32)}&step=boot`,
    `/discover/next?id=${MAC.replaceAll(':', '')}`,
  ]
  for (const path of paths)
    await exec('curl', ['--silent', '--fail', '--interface', '127.0.0.2', `${service.urls()[0]}${path}`])
  // From its own address, it may well be itself.
  const second = await words(service)
  await until('both were told of', () => bootsSeen().length >= 2)
  expect(bootsSeen()).toEqual([first['boot'], second['boot']])
})

it('gives a machine that was adopted an id it can prove itself with, instead of that of a stranger', async () => {
  await using service = await start({ authority })
  service.update(index)
  await service.settled()
  elapsed = 30
  const next = async (boot: string): Promise<string> =>
    (await plainly(service, 'GET', `/discover/next?id=525400000001&boot=${boot}`)).text
  const text = await next('0123456789abcdef')
  const boot = /^muster\.boot=([0-9a-f]{32})$/m.exec(text)?.[1] ?? ''
  const enrol = /^muster\.enrol=(.+)$/m.exec(text)?.[1] ?? ''
  expect(await next(boot)).toContain(`muster.boot=${boot}\n`)
  const body = { mac: MAC, boot, claim: sha256Of(SECRET) }
  expect(await ask(authority.pem, 'POST', `${enrol}/node/claim`, { body })).toMatchObject({ status: 200 })
})

it('says nothing of all that without an authority', async () => {
  await using service = await start()
  service.update(index)
  await service.settled()
  const said = await words(service)
  expect(Object.keys(said)).not.toContain('enrol')
  expect(said['boot']).toMatch(/^[0-9a-f]{16}$/)
  expect((await plainly(service, 'GET', '/ca.pem')).status).toBe(404)
  expect(service.enrolPlan()).toBeUndefined()
})
