import { createHash } from 'node:crypto'
import { appendFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { messageOf } from '../lib/errors.ts'
import { Heartbeat, type Sighting } from '../nodes/reports.ts'
import { type Claim, Enrolment, type Issued, type Proof } from './enrolment.ts'
import type { KnownMachine, ViewIndex } from './index-view.ts'
import { MAC, boots, indexOf, prov } from './testing.ts'

const KEY = Buffer.alloc(32, 7)
const SECRET = 'a'.repeat(64)
const OTHER_SECRET = 'b'.repeat(64)
const HERE = { from: '10.77.1.1', isRoot: true, server: '10.77.0.1' }
const OTHER_MAC = '52:54:00:00:00:02'
const nodes = [
  boots('n1', { interfaces: [prov('10.77.1.1', { mac: MAC })] }),
  boots('n2', { interfaces: [prov('10.77.1.2', { mac: OTHER_MAC })] }),
]

let dir: string
let file: string
let index: ViewIndex
let told: Sighting[]
let now: number
let elapsed: number
let enrolment: Enrolment

const claimOf = (secret: string): string => createHash('sha256').update(secret).digest('hex')
const open = (key = KEY): Promise<Enrolment> =>
  Enrolment.open({
    key,
    file,
    index: () => index,
    tell: sighting => void told.push(sighting),
    now: () => new Date(now),
    elapsed: () => elapsed,
  })
/** Time goes by. */
const wait = (seconds: number): void => {
  now += seconds * 1000
  elapsed += seconds
}
const machine = (mac = MAC): KnownMachine => index.machine(mac) as KnownMachine
/** The loader of n1 asks for its script. */
const script = (from = '10.77.1.1'): string => enrolment.newBoot(machine(), MAC, from)
const claim = (boot: string, more: Partial<Claim> = {}): Promise<string> =>
  enrolment.claim({ mac: MAC, boot, claim: claimOf(SECRET), ...HERE, ...more })
const prove = (boot: string, token: string, more: Partial<Proof> = {}): Promise<Issued> =>
  enrolment.credential({ mac: MAC, boot, token, secret: SECRET, ...HERE, ...more })
/** All that a node does, from its script to its credential. */
const enrol = async (boot = script()): Promise<string> => (await prove(boot, await claim(boot))).credential
/** It boots, is let in, and is up. */
const comeUp = async (): Promise<Heartbeat> => {
  const boot = script()
  const { beat } = await prove(boot, await claim(boot))
  const said = heartbeat(boot, beat)
  expect(enrolment.hear('n1', said)).toBe(true)
  return said
}
const heartbeat = (boot: string, beat?: string): Heartbeat => Heartbeat.parse({ boot, mac: MAC, beat })
const refused = (message: string) => ({ code: 'ENROL_REFUSED', message })
/** The process ends, however it may, and another one begins. */
const restart = async (): Promise<void> => {
  await enrolment[Symbol.asyncDispose]()
  enrolment = await open()
  wait(30)
}

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'muster-enrolment-'))
  file = join(dir, 'boot', 'enrolments.jsonl')
  index = indexOf({ nodes })
  told = []
  now = Date.parse('2026-03-01T12:00:00Z')
  elapsed = 1000
  enrolment = await open()
  wait(30)
})
afterEach(async () => {
  await enrolment[Symbol.asyncDispose]()
  await rm(dir, { recursive: true })
})

describe('a node that boots', () => {
  it('is let in: boot id, claim, token, credential', async () => {
    const boot = script()
    expect(boot).toMatch(/^69a42a[0-9a-f]{26}$/)
    const token = await claim(boot)
    expect(token).toMatch(/^[0-9a-f]{64}$/)
    const issued = await enrolment.credential({ mac: MAC, boot, token, secret: SECRET, ...HERE })
    expect(issued).toEqual({
      credential: expect.stringMatching(/^m1\.[\w-]+\.[\w-]{43}$/) as string,
      seconds: 3600,
      beat: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
    })
    expect(enrolment.check(issued.credential)).toEqual({
      node: 'n1',
      mac: MAC,
      boot,
      expires: Date.parse('2026-03-01T13:00:30Z') / 1000,
    })
    const seen = { at: '2026-03-01T12:00:30.000Z', server: '10.77.0.1', mac: MAC, boot, address: '10.77.1.1' }
    expect(told).toEqual([{ kind: 'enrolled', node: 'n1', ...seen }])
  })

  it('gets the same token for the same claim, and is told of once: the first reply may be lost', async () => {
    const boot = script()
    const token = await claim(boot)
    expect(await claim(boot)).toBe(token)
    expect(await Promise.all([claim(boot), claim(boot)])).toEqual([token, token])
    expect(told).toHaveLength(1)
  })

  it('is let in with its next boot again, and what it held before is worth nothing', async () => {
    const first = await enrol()
    wait(300)
    const second = await enrol()
    expect(enrolment.check(first)).toBeUndefined()
    expect(enrolment.check(second)).toMatchObject({ node: 'n1' })
  })

  it('may come from anywhere where the site gives it no address', async () => {
    index = indexOf({ nodes: [boots('n1', { interfaces: [{ name: 'prov', network: 'prov', mac: MAC }] })] })
    const boot = script('10.99.0.1')
    expect(await claim(boot, { from: '10.99.0.7' })).toMatch(/^[0-9a-f]{64}$/)
  })

  it('may have asked for its script from an address for strangers: it had that when it was not known yet', async () => {
    const boot = script('10.77.255.9')
    await expect(claim(boot, { from: '10.77.255.9' })).rejects.toMatchObject(refused('10.77.255.9 is not its address'))
    expect(await claim(boot)).toMatch(/^[0-9a-f]{64}$/)
  })
})

/** What the node is told, which is also what people are told. */
const whyNot = async (boot: string, more: Partial<Claim> = {}): Promise<string> => {
  told = []
  const said = await claim(boot, more).then(() => 'it was not refused', messageOf)
  const [seen] = told
  const isTold = seen?.kind === 'enrol-refused' && seen.node === 'n1' && seen.boot === boot && seen.reason === said
  return isTold ? said : `${said}, and told: ${JSON.stringify(told)}`
}

describe('a claim is refused', () => {
  it('with a boot id that somebody made up', async () => {
    expect(await whyNot('0123456789abcdef'.repeat(2))).toBe('this boot id was not given to it')
  })

  it.each([0, 8, 16, 31])('with one of which digit %i was changed', async digit => {
    const boot = script()
    const forged = boot.slice(0, digit) + (boot[digit] === '0' ? '1' : '0') + boot.slice(digit + 1)
    expect(await whyNot(forged)).toBe('this boot id was not given to it')
  })

  it('with the short one of a machine that nobody knows', async () => {
    expect(await whyNot('0123456789abcdef')).toBe('this boot id was not given to it')
  })

  it('with that of another node', async () => {
    const boot = enrolment.newBoot(machine(OTHER_MAC), OTHER_MAC, '10.77.1.2')
    expect(await whyNot(boot)).toBe('this boot id was not given to it')
  })

  it('with that of the same node on another machine', async () => {
    const boot = script()
    index = indexOf({ nodes: [boots('n1', { interfaces: [prov('10.77.1.1', { mac: OTHER_MAC })] })] })
    await expect(claim(boot, { mac: OTHER_MAC })).rejects.toMatchObject(refused('this boot id was not given to it'))
  })

  it('with one that another server signed', async () => {
    const other = await Enrolment.open({
      key: Buffer.alloc(32, 8),
      file: `${file}.2`,
      index: () => index,
      tell: () => {},
    })
    const boot = other.newBoot(machine(), MAC, '10.77.1.1')
    await other[Symbol.asyncDispose]()
    expect(await whyNot(boot)).toBe('this boot id was not given to it')
  })

  it('with one that was asked for from elsewhere than from the address of the node', async () => {
    const boot = script('10.77.1.2')
    expect(boot).toMatch(/^[0-9a-f]{32}$/)
    expect(await whyNot(boot)).toBe('this boot id was not given to it')
  })

  it('twenty minutes after its boot began', async () => {
    const boot = script()
    wait(20 * 60 - 1)
    await claim(boot)
    wait(1)
    expect(await whyNot(boot)).toBe('its boot began more than 20 minutes ago')
  })

  it('from another address than that of the node', async () => {
    expect(await whyNot(script(), { from: '10.77.1.9' })).toBe('10.77.1.9 is not its address')
  })

  it('by a user of the node', async () => {
    expect(await whyNot(script(), { isRoot: false })).toBe(
      'it was not root who asked: the port of a claim is below 1024',
    )
  })

  it('by somebody else than who claimed this boot first, for good and over a restart', async () => {
    const boot = script()
    await claim(boot)
    const taken = 'somebody else has claimed this boot'
    expect(await whyNot(boot, { claim: claimOf(OTHER_SECRET) })).toBe(taken)
    await restart()
    expect(await whyNot(boot, { claim: claimOf(OTHER_SECRET) })).toBe(taken)
    expect(await claim(boot)).toMatch(/^[0-9a-f]{64}$/)
  })

  it('by the slower of two that claim at the same moment', async () => {
    const boot = script()
    const [one, other] = await Promise.allSettled([claim(boot), claim(boot, { claim: claimOf(OTHER_SECRET) })])
    expect([one.status, other.status]).toEqual(['fulfilled', 'rejected'])
  })

  it('when the node has begun another boot since', async () => {
    const boot = script()
    script()
    expect(await whyNot(boot)).toBe('it has begun another boot since')
  })

  it('but not because somebody elsewhere asked for the script of the node', async () => {
    const boot = script()
    script('10.77.1.2')
    expect(await claim(boot)).toMatch(/^[0-9a-f]{64}$/)
  })

  it('while the node is up; once it has been silent for a minute it may boot', async () => {
    await comeUp()
    const boot = script()
    wait(59)
    expect(await whyNot(boot)).toBe('it is up: a heartbeat of another boot was heard just now')
    wait(1)
    expect(await claim(boot)).toMatch(/^[0-9a-f]{64}$/)
  })

  it('for 25 s where its firmware was seen to start', async () => {
    await comeUp()
    enrolment.starts('n1')
    const boot = script()
    wait(24)
    expect(await whyNot(boot)).toBe('it is up: a heartbeat of another boot was heard just now')
    wait(1)
    expect(await claim(boot)).toMatch(/^[0-9a-f]{64}$/)
  })

  it('while the node is up, although somebody makes its firmware up', async () => {
    const said = await comeUp()
    enrolment.starts('n1')
    const boot = script()
    wait(10)
    enrolment.hear('n1', said)
    wait(59)
    expect(await whyNot(boot)).toBe('it is up: a heartbeat of another boot was heard just now')
  })

  it('while the node is up, however many heartbeats of the new boot somebody makes up', async () => {
    await comeUp()
    const boot = script()
    for (const made of [boot, 'e'.repeat(32), boot]) expect(enrolment.hear('n1', heartbeat(made))).toBe(false)
    expect(await whyNot(boot)).toBe('it is up: a heartbeat of another boot was heard just now')
  })

  it('but not because of heartbeats that somebody made up', async () => {
    const boot = script()
    for (const made of [boot, 'e'.repeat(32)]) enrolment.hear('n1', heartbeat(made, 'a'.repeat(64)))
    expect(await claim(boot)).toMatch(/^[0-9a-f]{64}$/)
  })

  it('when this very boot has said that it is ready: whoever claims now is a user of the node', async () => {
    const boot = script()
    enrolment.ready('n1', MAC, boot)
    // Of one that is not ours nobody takes notice.
    enrolment.ready('n1', MAC, 'f'.repeat(32))
    expect(await whyNot(boot)).toBe('this boot is over: it is ready')
  })

  it('when this very boot sends heartbeats: only who is ready does', async () => {
    const { boot } = await comeUp()
    expect(await whyNot(boot)).toBe('this boot is over: it is ready')
  })

  it('of a machine that is no node, and nobody is told: machines are made up easily', async () => {
    const boot = script()
    index = indexOf({ nodes: [] })
    await expect(claim(boot)).rejects.toMatchObject(refused('this machine is no node of the site'))
    expect(told).toEqual([])
  })

  it('when the clock was set back by more than a minute', async () => {
    const boot = script()
    now -= 60_000
    expect(await claim(boot)).toMatch(/^[0-9a-f]{64}$/)
    now -= 1000
    expect(await whyNot(boot)).toBe('its boot begins in the future: the clock of the server was set back')
  })

  it('and told of once a minute for each node', async () => {
    const made = '0'.repeat(32)
    const attempt = (): Promise<unknown> => claim(made).catch(() => {})
    await attempt()
    await attempt()
    wait(59)
    await attempt()
    expect(told).toHaveLength(1)
    wait(1)
    await attempt()
    expect(told).toHaveLength(2)
  })
})

describe('a token', () => {
  it.each<[string, Partial<Proof>, string]>([
    ['with another secret', { secret: OTHER_SECRET }, 'this token was not given for this secret'],
    ['that was made up', { token: '0'.repeat(64) }, 'this token was not given for this secret'],
    ['that was cut short', { token: '' }, 'this token was not given for this secret'],
    ['for another boot', { boot: 'f'.repeat(32) }, 'this token was not given for this secret'],
    ['from another address', { from: '10.77.1.9' }, '10.77.1.9 is not its address'],
    ['shown by a user', { isRoot: false }, 'it was not root who asked: the port of a claim is below 1024'],
  ])('%s is worth nothing', async (_, more, reason) => {
    const boot = script()
    const token = await claim(boot)
    told = []
    await expect(prove(boot, token, more)).rejects.toMatchObject(refused(reason))
    expect(told).toMatchObject([{ kind: 'enrol-refused', node: 'n1', reason }])
  })

  it('is good for twenty minutes, as often as the node needs it', async () => {
    const boot = script()
    const token = await claim(boot)
    wait(20 * 60 - 1)
    expect(enrolment.check((await prove(boot, token)).credential)).toBeDefined()
    wait(1)
    await expect(prove(boot, token)).rejects.toMatchObject(refused('it was claimed more than 20 minutes ago'))
  })

  it('of an earlier boot is worth nothing', async () => {
    const boot = script()
    const token = await claim(boot)
    await claim(script())
    await expect(prove(boot, token)).rejects.toMatchObject(refused('its claim is not the one that was granted last'))
  })

  it('is worth nothing once the node was revoked', async () => {
    const boot = script()
    const token = await claim(boot)
    await enrolment.revoke('n1')
    await expect(prove(boot, token)).rejects.toMatchObject(refused('it was revoked and has not booted since'))
  })
})

describe('a credential', () => {
  it('expires after an hour and a minute for the clocks of servers, and can be renewed until then', async () => {
    const credential = await enrol()
    wait(3659)
    const held = enrolment.check(credential)
    expect(held).toBeDefined()
    const next = enrolment.renew(credential, HERE)?.credential ?? ''
    wait(1)
    expect(enrolment.check(credential)).toBeUndefined()
    expect(enrolment.check(next)).toMatchObject({ node: 'n1', boot: held?.boot })
  })

  it('that ran out while servers were away is renewed, for as long as that boot lasts', async () => {
    const credential = await enrol()
    wait(30 * 86_400)
    expect(enrolment.check(credential)).toBeUndefined()
    expect(enrolment.check(enrolment.renew(credential, HERE)?.credential ?? '')).toMatchObject({ node: 'n1' })
    await enrol()
    expect(enrolment.renew(credential, HERE)).toBeUndefined()
  })

  it.each<[string, Partial<Proof>]>([
    ['somebody else than root', { isRoot: false }],
    ['from elsewhere', { from: '10.77.1.9' }],
  ])('is not renewed for %s', async (_, more) => {
    expect(enrolment.renew(await enrol(), { ...HERE, ...more })).toBeUndefined()
  })

  it.each([
    ['changed in what it says', (text: string) => text.replace(/^m1\.../, 'm1.AA')],
    ['changed in its signature', (text: string) => text.slice(0, -10) + 'AAAAAAAAAA'],
    ['spelt otherwise at its end', (text: string) => text.slice(0, -1) + nextLetter(text.at(-1))],
    ['without a signature', (text: string) => text.slice(0, -44)],
    ['with something behind it', (text: string) => `${text}\n`],
    ['empty', () => ''],
  ])('%s is none', async (_, change) => {
    expect(enrolment.check(change(await enrol()))).toBeUndefined()
  })

  it('signed with another key is none', async () => {
    const credential = await enrol()
    await enrolment[Symbol.asyncDispose]()
    enrolment = await open(Buffer.alloc(32, 8))
    expect(enrolment.check(credential)).toBeUndefined()
  })

  it('is good after a restart, too', async () => {
    const credential = await enrol()
    await restart()
    expect(enrolment.check(credential)).toMatchObject({ node: 'n1' })
  })

  it('is worth nothing as soon as the node is no node of the site, or is another machine', async () => {
    const credential = await enrol()
    expect(enrolment.check(credential)).toBeDefined()
    index = indexOf({ nodes: nodes.slice(1) })
    expect(enrolment.check(credential)).toBeUndefined()
    index = indexOf({ nodes: [boots('n1', { interfaces: [prov('10.77.1.1', { mac: OTHER_MAC })] })] })
    expect(enrolment.check(credential)).toBeUndefined()
    // The machine has become another node.
    index = indexOf({ nodes: [boots('n7', { interfaces: [prov('10.77.1.1', { mac: MAC })] })] })
    expect(enrolment.check(credential)).toBeUndefined()
  })

  it('is worth nothing from the moment it is revoked, over a restart too, until the next boot of the node', async () => {
    const credential = await enrol()
    wait(5)
    await enrolment.revoke('n1')
    expect(enrolment.check(credential)).toBeUndefined()
    await restart()
    expect(enrolment.check(credential)).toBeUndefined()
    expect(enrolment.check(await enrol())).toMatchObject({ node: 'n1' })
    expect(enrolment.check(credential)).toBeUndefined()
  })

  it('cannot be had by a boot that began before the node was revoked', async () => {
    const boot = script()
    wait(1)
    await enrolment.revoke('n1')
    await expect(claim(boot)).rejects.toMatchObject(refused('it was revoked and has not booted since'))
  })
})

describe('a server that was restarted', () => {
  it('knows the boot ids it gave out', async () => {
    const boot = script()
    await restart()
    expect(await claim(boot)).toMatch(/^[0-9a-f]{64}$/)
  })

  it('lets nobody in before nodes that are up had time to be heard', async () => {
    await enrol()
    await enrolment[Symbol.asyncDispose]()
    enrolment = await open()
    told = []
    const boot = script()
    wait(14)
    await expect(claim(boot)).rejects.toMatchObject({ code: 'ENROL_EARLY', status: 503 })
    wait(1)
    expect(await claim(boot)).toMatch(/^[0-9a-f]{64}$/)
    expect(told).toMatchObject([{ kind: 'enrolled' }])
  })

  it('lets in at once who cannot be up: never let in before, or in the middle of this boot', async () => {
    await enrolment[Symbol.asyncDispose]()
    enrolment = await open()
    const boot = script()
    const token = await claim(boot)
    await enrolment[Symbol.asyncDispose]()
    enrolment = await open()
    expect(await claim(boot)).toBe(token)
  })

  it('has forgotten a claim that was torn when it was written: nobody was told of it', async () => {
    const boot = script()
    await claim(boot)
    const whole = await readFile(file, 'utf8')
    await writeFile(file, whole.slice(0, -2))
    await restart()
    expect(await claim(boot, { claim: claimOf(OTHER_SECRET) })).toMatch(/^[0-9a-f]{64}$/)
    expect(await readFile(file, 'utf8')).toContain(claimOf(OTHER_SECRET))
  })

  it('gives the node its token again when it was killed between writing and answering', async () => {
    const boot = script()
    const token = await claim(boot)
    await restart()
    expect(await claim(boot)).toBe(token)
    expect(enrolment.check((await prove(boot, token)).credential)).toBeDefined()
  })

  it('keeps one line for each node', async () => {
    for (const _ of [1, 2, 3]) await enrol()
    const boot = script()
    await claim(boot)
    await enrolment.revoke('n2')
    await restart()
    const granted = { boot, claim: claimOf(SECRET), at: now / 1000 - 30 }
    expect((await readFile(file, 'utf8')).split('\n')).toEqual([
      JSON.stringify({ node: 'n1', granted }),
      JSON.stringify({ node: 'n2', revoked: now / 1000 - 30 }),
      '',
    ])
  })

  it('does not start from a book that was damaged: who was revoked might be let in', async () => {
    await enrol()
    await appendFile(file, 'something else\n')
    await appendFile(file, '{"node":"n9","revoked":1}\n')
    await expect(open()).rejects.toMatchObject({
      code: 'STATE_DAMAGED',
      message: `${file}:2: is not what was written there`,
    })
  })
})

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
/** The same bits for whoever does not look at the last two. */
const nextLetter = (letter = 'A'): string => LETTERS[LETTERS.indexOf(letter) ^ 1] ?? ''

describe('what is said of a boot', () => {
  it('counts as said of the node while that is not up, whoever may say it', () => {
    expect(enrolment.isHeeded(machine(), MAC, 'f'.repeat(32))).toBe(true)
  })

  it('counts while it is up only if we gave that boot to it: somebody else cannot make it seem to boot', async () => {
    await comeUp()
    expect(enrolment.isHeeded(machine(), MAC, 'f'.repeat(32))).toBe(false)
    expect(enrolment.isHeeded(machine(), MAC, script('10.77.1.2'))).toBe(false)
    expect(enrolment.isHeeded(machine(), MAC, script())).toBe(true)
    wait(25)
    expect(enrolment.isHeeded(machine(), MAC, 'f'.repeat(32))).toBe(true)
  })
})

describe('a heartbeat', () => {
  it('counts when it shows what only the node was given', async () => {
    const said = await comeUp()
    wait(10)
    expect(enrolment.hear('n1', said)).toBe(true)
    expect(enrolment.hear('n1', { ...said })).toBe(true)
  })

  it.each<[string, (said: Heartbeat) => Heartbeat]>([
    ['without it', said => ({ ...said, beat: undefined })],
    ['with another one', said => ({ ...said, beat: 'a'.repeat(64) })],
    ['of another boot', said => ({ ...said, boot: 'f'.repeat(32) })],
  ])('%s does not count while the node is up', async (_, change) => {
    const said = await comeUp()
    expect(enrolment.hear('n1', change(said))).toBe(false)
  })

  it('of a boot that was never let in counts, as long as no other is up: not every image can prove something', async () => {
    expect(enrolment.hear('n1', heartbeat('f'.repeat(16)))).toBe(true)
    await comeUp()
    wait(25)
    expect(enrolment.hear('n1', heartbeat('f'.repeat(16)))).toBe(true)
  })

  it('is known after a restart, too', async () => {
    const { boot, beat } = await comeUp()
    await restart()
    expect(enrolment.hear('n1', heartbeat(boot))).toBe(false)
    expect(enrolment.hear('n1', heartbeat(boot, beat))).toBe(true)
  })
})
