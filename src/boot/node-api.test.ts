import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { Agent, type Server, request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { pino } from 'pino'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { say } from '../api/testing.ts'
import { Authority } from '../ca/authority.ts'
import { exec } from '../lib/exec.ts'
import { Enrolment } from './enrolment.ts'
import type { KnownMachine, ViewIndex } from './index-view.ts'
import { createNodeApi } from './node-api.ts'
import { MAC, boots, indexOf, prov, sha256Of, rootsPort } from './testing.ts'

const SECRET = '5'.repeat(64)
const CLAIM = sha256Of(SECRET)
const OTHER_MAC = '52:54:00:00:00:02'
const MOTD = Buffer.from('welcome to n1\n')
const LIST = Buffer.from(`muster-files 1\nfile\tboot\t0644\troot\troot\t${sha256Of(MOTD)}\t14\t-\t/etc/motd\nend\n`)
const VERSION = sha256Of(LIST).slice(0, 16)

let base: string
let authority: Authority
beforeAll(async () => {
  base = await mkdtemp(join(tmpdir(), 'muster-node-api-'))
  authority = await Authority.open(join(base, 'ca'))
}, 120_000)
afterAll(() => rm(base, { recursive: true }))

let enrolment: Enrolment
let server: Server
let port: number
let index: ViewIndex
let logged: string[]
let elapsed: number
let hasFiles: boolean

beforeEach(async () => {
  index = indexOf({
    nodes: [
      boots('n1', { interfaces: [prov('127.0.0.1', { mac: MAC })] }),
      boots('n2', { interfaces: [prov('127.0.0.2', { mac: OTHER_MAC })] }),
    ],
  })
  logged = []
  elapsed = 0
  hasFiles = true
  enrolment = await Enrolment.open({
    key: authority.nodeKey,
    file: join(base, `${Math.random()}.jsonl`),
    index: () => index,
    tell: () => {},
    elapsed: () => elapsed,
  })
  elapsed = 100
  const logger = pino({ base: null }, { write: line => void logged.push(line) })
  const files = {
    list: (node: string) => (hasFiles && node === 'n1' ? { version: VERSION, text: LIST } : undefined),
    content: (node: string, sha256: string) => (node === 'n1' && sha256 === sha256Of(MOTD) ? MOTD : undefined),
  }
  server = createNodeApi({ logger, enrolment, files, patience: 500 }, await authority.serverFor(['127.0.0.1']))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  port = (server.address() as AddressInfo).port
})
afterEach(async () => {
  server.closeAllConnections()
  server.close()
  await enrolment[Symbol.asyncDispose]()
})

interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
}
const ask = (
  method: string,
  path: string,
  {
    body,
    agent,
    isUser,
    ...headers
  }: { body?: unknown; agent?: Agent; isUser?: boolean } & Record<string, unknown> = {},
): Promise<Reply> =>
  new Promise((resolve, reject) => {
    const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body)
    const sent = request(
      {
        host: '127.0.0.1',
        port,
        method,
        path,
        ca: authority.pem,
        agent: agent ?? false,
        ...(isUser !== true && { localPort: rootsPort() }),
        headers: headers as Record<string, string>,
      },
      response => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.once('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            text: Buffer.concat(chunks).toString('utf8'),
          }),
        )
      },
    )
    sent.once('error', reject)
    sent.end(text)
  })
const script = (): string => enrolment.newBoot(index.machine(MAC) as KnownMachine, MAC, '127.0.0.1')
const valueOf = (text: string, key: string): string => new RegExp(`^${key}=(.+)$`, 'm').exec(text)?.[1] ?? ''
const credential = async (): Promise<string> => {
  const boot = script()
  const claimed = await ask('POST', '/node/claim', { body: { mac: MAC, boot, claim: CLAIM } })
  const token = valueOf(claimed.text, 'token')
  const proved = await ask('POST', '/node/credential', { body: { mac: MAC, boot, token, secret: SECRET } })
  return valueOf(proved.text, 'credential')
}
const bearer = (held: string) => ({ authorization: `Bearer ${held}` })

const curl = (...args: string[]) =>
  exec('curl', ['--silent', '--show-error', '--local-port', '512-1023', ...args], { allow: [60] }).then(
    ({ stdout, exitCode }) => ({
      text: stdout.toString(),
      exitCode,
    }),
  )

describe('a node', () => {
  it('claims, proves, gets its list and its files, and renews', async () => {
    const boot = script()
    const claimed = await ask('POST', '/node/claim', { body: { mac: MAC, boot, claim: CLAIM } })
    expect(claimed).toMatchObject({ status: 200, text: expect.stringMatching(/^token=[0-9a-f]{64}\n$/) as string })
    expect((await ask('POST', '/node/claim', { body: { mac: MAC, boot, claim: CLAIM } })).text).toBe(claimed.text)
    const token = valueOf(claimed.text, 'token')
    const proved = await ask('POST', '/node/credential', { body: { mac: MAC, boot, token, secret: SECRET } })
    expect(proved).toMatchObject({
      status: 200,
      text: expect.stringMatching(/^credential=m1\.[\w-]+\.[\w-]{43}\nexpires=3600\nbeat=[0-9a-f]{64}\n$/) as string,
    })
    const held = bearer(valueOf(proved.text, 'credential'))

    const list = await ask('GET', '/node/files', held)
    expect(list).toMatchObject({ status: 200, text: LIST.toString() })
    expect(list.headers).toMatchObject({ etag: `"${VERSION}"`, 'content-type': 'text/plain' })
    expect(await ask('GET', '/node/files', { ...held, 'if-none-match': `"${VERSION}"` })).toMatchObject({
      status: 304,
      text: '',
    })
    expect(await ask('GET', '/node/files', { ...held, 'if-none-match': '"0000"' })).toMatchObject({ status: 200 })
    const file = await ask('GET', `/node/files/${sha256Of(MOTD)}`, held)
    expect(file).toMatchObject({ status: 200, text: 'welcome to n1\n' })
    expect(file.headers).toMatchObject({ 'content-type': 'application/octet-stream', 'cache-control': 'no-store' })

    const renewed = await ask('POST', '/node/renew', held)
    expect(renewed).toMatchObject({
      status: 200,
      text: expect.stringMatching(/\nexpires=3600\nbeat=[0-9a-f]{64}\n$/) as string,
    })
    const next = bearer(valueOf(renewed.text, 'credential'))
    expect((await ask('GET', '/node/files', next)).status).toBe(200)
  })

  it('for which there are no files is told so', async () => {
    hasFiles = false
    expect(await ask('GET', '/node/files', bearer(await credential()))).toMatchObject({ status: 204, text: '' })
  })

  it('gets no content that is in the list of another node only, nor one that nobody has', async () => {
    const held = bearer(await credential())
    for (const sha256 of [sha256Of('of another'), '../../etc/passwd', '', 'A'.repeat(64)])
      expect(await ask('GET', `/node/files/${sha256}`, held)).toMatchObject({
        status: 404,
        text: 'error: no file of this node has that content\nhint: ask for its list anew\n',
      })
  })

  it('talks by curl, which believes the certificate only with the authority', async () => {
    await writeFile(join(base, 'ca.pem'), authority.pem)
    const url = `https://127.0.0.1:${port}`
    expect((await curl(`${url}/healthz`)).exitCode).toBe(60)
    const trusting = ['--cacert', join(base, 'ca.pem')]
    expect(await curl(...trusting, `${url}/healthz`)).toEqual({ text: 'ok\n', exitCode: 0 })
    const post = (path: string, body: unknown) =>
      curl(...trusting, '-H', 'content-type: application/json', '-d', JSON.stringify(body), `${url}${path}`)
    const boot = script()
    const token = valueOf((await post('/node/claim', { mac: MAC, boot, claim: CLAIM })).text, 'token')
    const { text } = await post('/node/credential', { mac: MAC, boot, token, secret: SECRET })
    const header = ['-H', `authorization: Bearer ${valueOf(text, 'credential')}`]
    expect((await curl(...trusting, ...header, `${url}/node/files`)).text).toBe(LIST.toString())
    expect((await curl(...trusting, ...header, '-X', 'POST', `${url}/node/renew`)).text).toMatch(/^credential=m1\./)
  })

  it('asks many times over one connection', async () => {
    const held = bearer(await credential())
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    let connections = 0
    server.on('secureConnection', () => connections++)
    for (let time = 0; time < 20; time++)
      expect(await ask('GET', '/node/files', { ...held, agent, 'if-none-match': `"${VERSION}"` })).toMatchObject({
        status: 304,
      })
    expect(connections).toBe(1)
    agent.destroy()
  })
})

describe('whoever is no node', () => {
  const REFUSED =
    'error: this credential is worth nothing\nhint: boot it anew: a node gets its credential while it boots\n'

  it.each([
    ['nothing', {}],
    ['an empty credential', { authorization: 'Bearer ' }],
    ['one that was made up', { authorization: `Bearer m1.${'A'.repeat(100)}.${'A'.repeat(43)}` }],
    ['another kind of it', { authorization: 'Basic cm9vdDpyb290' }],
  ])('gets nothing for %s', async (_, headers) => {
    for (const [method, path] of [
      ['GET', '/node/files'],
      ['GET', `/node/files/${sha256Of(MOTD)}`],
      ['POST', '/node/renew'],
    ] as const)
      expect(await ask(method, path, headers)).toMatchObject({ status: 401, text: REFUSED })
  })

  it('gets nothing any more once the node was revoked, however good the credential was a moment ago', async () => {
    const held = bearer(await credential())
    expect((await ask('GET', '/node/files', held)).status).toBe(200)
    await enrolment.revoke('n1')
    expect(await ask('GET', '/node/files', held)).toMatchObject({ status: 401 })
    expect(await ask('POST', '/node/renew', held)).toMatchObject({ status: 401 })
  })

  it('is told why a claim is refused, and what helps', async () => {
    const body = { mac: MAC, boot: '0'.repeat(32), claim: CLAIM }
    expect(await ask('POST', '/node/claim', { body })).toMatchObject({
      status: 403,
      text: 'error: this boot id was not given to it\nhint: boot it anew; see how nodes are let in: docs/how-to/trust-nodes.md\n',
    })
  })

  it('cannot claim a node from an address that is not its own', async () => {
    const boot = enrolment.newBoot(index.machine(OTHER_MAC) as KnownMachine, OTHER_MAC, '127.0.0.2')
    expect(await ask('POST', '/node/claim', { body: { mac: OTHER_MAC, boot, claim: CLAIM } })).toMatchObject({
      status: 403,
      text: expect.stringContaining('error: 127.0.0.1 is not its address\n') as string,
    })
  })

  it('is asked to come again while the server does not know yet who is up', async () => {
    await credential()
    elapsed = 10
    expect(await ask('POST', '/node/claim', { body: { mac: MAC, boot: script(), claim: CLAIM } })).toMatchObject({
      status: 503,
      headers: { 'retry-after': '3' },
    })
  })
})

describe('the server', () => {
  it.each([
    ['no JSON', 'half {', 400, 'error: the body is not JSON\n'],
    ['a list', [], 400, 'error: : '],
    ['no MAC', { mac: 'x', boot: '0'.repeat(32), claim: CLAIM }, 400, 'error: mac: '],
    ['no boot id', { mac: MAC, boot: '../..', claim: CLAIM }, 400, 'error: boot: is not the id of a boot\n'],
    ['no digest', { mac: MAC, boot: '0'.repeat(32), claim: 'x' }, 400, 'error: claim: is not 64 hex digits\n'],
    ['more than was asked for', { mac: MAC, boot: '0'.repeat(32), claim: CLAIM, x: 1 }, 400, 'error: : '],
    ['far too much', 'x'.repeat(17_000), 413, 'error: a report may have 16384 bytes\n'],
  ])('takes no claim that is %s', async (_, body, status, text) => {
    expect(await ask('POST', '/node/claim', { body })).toMatchObject({
      status,
      text: expect.stringContaining(text) as string,
    })
  })

  it.each([
    ['GET', '/'],
    ['GET', '/node/claim'],
    ['POST', '/node/files'],
    ['GET', '/node/files?node=n2'],
    ['DELETE', '/node/files'],
    ['GET', '/node/../node/files'],
  ])('knows no %s %s', async (method, path) => {
    expect((await ask(method, path, bearer(await credential()))).status).toBe(404)
  })

  it('does not wait for ever for a body, and does not speak old TLS', async () => {
    const socket = connect({ port, host: '127.0.0.1', ca: authority.pem })
    await once(socket, 'secureConnect')
    expect(await say(socket, 'POST /node/claim HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{"mac"')).toBe('')
    const old = connect({
      port,
      host: '127.0.0.1',
      ca: authority.pem,
      minVersion: 'TLSv1.1',
      maxVersion: 'TLSv1.1',
      ciphers: 'ALL:@SECLEVEL=0',
    })
    const [error] = (await once(old, 'error')) as [Error & { code: string }]
    expect(error.code).toMatch(/ALERT_PROTOCOL_VERSION|UNSUPPORTED_PROTOCOL/)
  })

  it('survives whoever speaks no TLS at all', async () => {
    const { stdout } = await exec('curl', ['-s', `http://127.0.0.1:${port}/healthz`], { allow: [52, 56] })
    expect(stdout.toString()).toBe('')
    expect((await ask('GET', '/healthz')).text).toBe('ok\n')
  })

  it('writes neither credentials nor secrets into its log, and says nothing of a defect to nodes', async () => {
    const held = await credential()
    Object.assign(index, {
      machine: () => {
        throw new Error('a defect')
      },
    })
    const reply = await ask('GET', '/node/files', bearer(held))
    expect(reply).toMatchObject({
      status: 500,
      text: 'error: something went wrong here\nhint: ask again, or another server\n',
    })
    expect(logged).toHaveLength(1)
    expect(logged.join('')).not.toContain(held)
    expect(logged.join('')).not.toContain(SECRET)
  })

  it('shows its new certificate to whoever connects after it was renewed, and goes on', async () => {
    const held = bearer(await credential())
    authority.onRenewed(made => server.setSecureContext(made))
    await authority.renew()
    expect((await ask('GET', '/node/files', held)).status).toBe(200)
    const socket = connect({ port, host: '127.0.0.1', ca: authority.pem })
    await once(socket, 'secureConnect')
    expect(socket.getPeerX509Certificate()?.fingerprint256).toBe(authority.facts().server?.fingerprint)
    socket.destroy()
  })
})
