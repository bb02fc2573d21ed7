import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TLSSocket, connect, createServer } from 'node:tls'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { exec } from '../lib/exec.ts'
import { Authority, type ServerCertificate } from './authority.ts'

const NOW = new Date('2026-03-01T12:00:00Z')
const DAY = 86_400_000
const later = (days: number) => (): Date => new Date(NOW.getTime() + days * DAY)

let base: string
let dir: string
beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), 'muster-ca-'))
  dir = join(base, 'ca')
})
afterEach(() => rm(base, { recursive: true }))

const modeOf = async (name: string): Promise<string> => ((await stat(join(dir, name))).mode & 0o777).toString(8)
const openssl = async (...args: string[]): Promise<string> => (await exec('openssl', args)).stdout.toString()

describe('an authority', () => {
  it('is made once, of files that only root may read where they are keys', async () => {
    const made = await Authority.open(dir, () => NOW)
    expect((await readdir(dir)).toSorted()).toEqual(['ca.key', 'ca.pem', 'node.key'])
    expect([await modeOf('ca.key'), await modeOf('node.key'), await modeOf('.')]).toEqual(['600', '600', '700'])
    expect(made.nodeKey).toHaveLength(32)

    const again = await Authority.open(dir, () => NOW)
    expect(again.pem).toBe(made.pem)
    expect(again.nodeKey).toEqual(made.nodeKey)
    expect(again.pem).toBe(await readFile(join(dir, 'ca.pem'), 'utf8'))
    expect((await exec('sha256sum', [join(dir, 'ca.pem')])).stdout.toString()).toBe(
      `${again.sha256}  ${join(dir, 'ca.pem')}\n`,
    )
  })

  it('may sign servers and nothing else, for ten years, since yesterday', async () => {
    const { authority } = (await Authority.open(dir, () => NOW)).facts()
    expect(authority.subject).toMatch(/^CN=Muster CA [0-9a-f]{8}$/)
    expect(authority.from).toBe('2026-02-28T12:00:00.000Z')
    expect(authority.until).toBe('2036-03-01T12:00:00.000Z')
    const text = await openssl('x509', '-in', join(dir, 'ca.pem'), '-noout', '-text')
    expect(text).toContain('Public-Key: (3072 bit)')
    expect(text).toContain('CA:TRUE, pathlen:0')
    expect(text).toContain('Certificate Sign, CRL Sign')
  })

  it('is made anew by whoever comes after one that was killed while it made it', async () => {
    await mkdir(`${dir}.new`)
    await writeFile(join(`${dir}.new`, 'ca.key'), 'half a k')
    await Authority.open(dir, () => NOW)
    expect(await readdir(base)).toEqual(['ca'])
  })

  it.each([
    ['ca.key', 'half', 'ca.key and ca.pem are no key and its certificate'],
    ['ca.pem', '', 'ca.key and ca.pem are no key and its certificate'],
    ['node.key', 'short', 'node.key does not have 32 bytes'],
    ['node.key', undefined, 'node.key cannot be read'],
  ])('is not replaced when its %s is damaged (%s): its nodes would trust nobody', async (file, content, problem) => {
    await Authority.open(dir, () => NOW)
    await rm(join(dir, file))
    if (content !== undefined) await writeFile(join(dir, file), content)
    await expect(Authority.open(dir, () => NOW)).rejects.toMatchObject({
      code: 'CA_FAILED',
      message: `${dir}: ${problem}`,
    })
  })
})

describe('the certificate of a server', () => {
  it('is good for its addresses, this machine and its name; signed by the authority, for 90 days', async () => {
    const authority = await Authority.open(dir, () => NOW)
    await authority.serverFor(['10.77.0.1', 'fd00::1'])
    expect(await modeOf('server.key')).toBe('600')
    const { server } = authority.facts()
    expect(server).toMatchObject({
      subject: 'CN=Muster boot server',
      from: '2026-02-28T12:00:00.000Z',
      until: '2026-05-30T12:00:00.000Z',
    })
    expect(server?.hosts).toEqual(expect.arrayContaining(['10.77.0.1', 'fd00::1', '127.0.0.1', 'localhost']))
    const verified = ['-CAfile', join(dir, 'ca.pem'), '-attime', String(NOW.getTime() / 1000), '-purpose', 'sslserver']
    expect(await openssl('verify', ...verified, '-verify_ip', '10.77.0.1', join(dir, 'server.pem'))).toBe(
      `${join(dir, 'server.pem')}: OK\n`,
    )
  })

  it('stays the same as long as it is good, over a restart too', async () => {
    const authority = await Authority.open(dir, () => NOW)
    const first = await authority.serverFor(['10.77.0.1', 'fd00::1'])
    expect(await authority.serverFor(['fd00::1'])).toEqual(first)
    expect(await (await Authority.open(dir, later(58))).serverFor(['10.77.0.1', 'fd00::1'])).toEqual(first)
  })

  it.each([
    ['a third of its time is left', later(61), ['10.77.0.1']],
    ['the server has another address', later(0), ['10.77.0.1', '10.78.0.1']],
    ['the clock was set back behind its beginning', later(-3), ['10.77.0.1']],
  ])('is renewed when %s', async (_, now, addresses) => {
    const first = await (await Authority.open(dir, () => NOW)).serverFor(['10.77.0.1'])
    const authority = await Authority.open(dir, now)
    const told: ServerCertificate[] = []
    authority.onRenewed(made => void told.push(made))
    const second = await authority.serverFor(addresses)
    expect(second.key).not.toBe(first.key)
    expect(told).toEqual([second])
    expect(await readFile(join(dir, 'server.pem'), 'utf8')).toBe(second.cert)
    expect(authority.facts().server?.hosts).toEqual(expect.arrayContaining(addresses))
  })

  it('is renewed when somebody says so, for the same hosts', async () => {
    const authority = await Authority.open(dir, () => NOW)
    await authority.serverFor(['10.77.0.1', 'fd00::1'])
    const before = authority.facts().server
    const { server } = await authority.renew()
    expect(server?.fingerprint).not.toBe(before?.fingerprint)
    expect(server?.hosts.toSorted()).toEqual(before?.hosts.toSorted())
  })

  it('is made anew when only its key was written before the server was killed, or it is of another authority', async () => {
    const authority = await Authority.open(dir, () => NOW)
    const first = await authority.serverFor(['10.77.0.1'])
    await (await Authority.open(join(base, 'other'), () => NOW)).renew()
    await writeFile(join(dir, 'server.key'), await readFile(join(base, 'other', 'server.key')))
    await mkdir(join(dir, 'work-123456'))
    await writeFile(join(dir, 'server.pem.new'), 'half')
    const again = await Authority.open(dir, () => NOW)
    const second = await again.serverFor(['10.77.0.1'])
    expect(second.cert).not.toBe(first.cert)
    expect((await readdir(dir)).toSorted()).toEqual(['ca.key', 'ca.pem', 'node.key', 'server.key', 'server.pem'])

    for (const name of ['server.key', 'server.pem'])
      await writeFile(join(dir, name), await readFile(join(base, 'other', name)))
    const third = await (await Authority.open(dir, () => NOW)).serverFor(['10.77.0.1'])
    expect(new X509Certificate(third.cert).verify(new X509Certificate(again.pem).publicKey)).toBe(true)
  })

  it('asked for by many at once is made once', async () => {
    const authority = await Authority.open(dir, () => NOW)
    const made = await Promise.all([1, 2, 3].map(() => authority.serverFor(['10.77.0.1'])))
    expect(new Set(made.map(({ cert }) => cert)).size).toBe(1)
  })

  it('is believed over a real connection by whoever trusts the authority, and by nobody else', async () => {
    const authority = await Authority.open(dir)
    const server = createServer(await authority.serverFor(['127.0.0.1']), socket => void socket.end('hello'))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    try {
      const trusting = connect({ port, host: '127.0.0.1', ca: authority.pem })
      await once(trusting, 'secureConnect')
      expect(trusting.authorized).toBe(true)
      trusting.destroy()
      const other = await Authority.open(join(base, 'other'))
      expect(await errorOf(connect({ port, host: '127.0.0.1', ca: other.pem }))).toMatchObject({
        code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
      })

      // Renewed while it listens: the next connection sees the new one.
      authority.onRenewed(made => server.setSecureContext(made))
      await authority.renew()
      const next = connect({ port, host: '127.0.0.1', ca: authority.pem })
      await once(next, 'secureConnect')
      expect(next.getPeerX509Certificate()?.fingerprint256).toBe(authority.facts().server?.fingerprint)
      next.destroy()
    } finally {
      server.close()
    }
  })
})

it('says what is missing where there is no openssl', async () => {
  const path = process.env['PATH']
  process.env['PATH'] = base
  try {
    await expect(Authority.open(dir)).rejects.toMatchObject({
      code: 'CA_FAILED',
      message: 'certificates cannot be made: openssl is not installed',
      hint: 'install what is missing: apt-get install openssl',
    })
  } finally {
    process.env['PATH'] = path
  }
})

const errorOf = (socket: TLSSocket): Promise<Error> => new Promise(resolve => socket.once('error', resolve))
