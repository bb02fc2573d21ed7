import { mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { exec } from '../../src/lib/exec.ts'
import { type Ran, type RunningServer, git, makeSite, muster, normalise, serve, temporaryDirectory } from './testing.ts'

/** An image's way into production as an administrator goes it: keys, signatures, channels, and back. */
let dir: string
let site: string
let server: RunningServer
const digests: string[] = []

beforeAll(async () => {
  dir = await temporaryDirectory()
  site = await makeSite(join(dir, 'site'))
  server = await serve(site, join(dir, 'data'))
  for (const text of ['one', 'two', 'three']) {
    await mkdir(join(dir, text, 'etc'), { recursive: true })
    await writeFile(join(dir, text, 'etc/motd'), `${text}\n`)
    digests.push((await json<{ digest: string }>(`image import compute --tree ${join(dir, text)} ${DATA()}`)).digest)
  }
}, 120_000)
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await rm(dir, { recursive: true })
})

const DATA = (): string => `--data ${join(dir, 'ci')}`
const run = (words: string | readonly string[]): Promise<Ran> => muster(words, { cwd: dir, env: server.env })
async function json<Value>(words: string): Promise<Value> {
  const ran = await run(`${words} --json`)
  if (ran.status !== 0) throw new Error(ran.stderr)
  return JSON.parse(ran.stdout) as Value
}
const short = (index: number): string => (digests[index] ?? '').slice(0, 19)
const whole = (index: number): string => `compute@${digests[index]}`

describe('keys', () => {
  it('are made outside the site, and named in it', async () => {
    const ran = await run(`key new ci --signing-key ${dir}/ci.pem --until 2099-12-31 --site ${site}`)
    expect(normalise(ran.stdout).split('\n').slice(-2)[0]).toContain('next: muster image sign IMAGE --signing-key')
    expect(await readFile(join(dir, 'ci.pem'), 'utf8')).toMatch(/^-----BEGIN PRIVATE KEY-----\n/)
    expect(await git(site, 'log', '-1', '--format=%s')).toBe('Trust the key ci\n')
    expect(await json(`key ls --site ${site}`)).toMatchObject([{ name: 'ci', until: '2099-12-31' }])
  })

  it('are not made twice, nor inside the repository', async () => {
    const twice = await run(`key new ci --signing-key ${dir}/ci2.pem --site ${site}`)
    expect(twice.stderr).toContain('the site has a key ci already')
    const inside = await run(`key new other --signing-key ${site}/ci.pem --site ${site}`)
    expect(inside.stderr).toContain('is inside the repository: keep keys out of git')
  })

  it('that others may read are refused', async () => {
    await exec('chmod', ['644', join(dir, 'ci.pem')])
    const ran = await run(`image sign compute --signing-key ${dir}/ci.pem ${DATA()}`)
    expect(ran.stderr).toContain(`others may read the key file ${dir}/ci.pem`)
    expect(ran.stderr).toContain(`chmod 600 ${dir}/ci.pem`)
    await exec('chmod', ['600', join(dir, 'ci.pem')])
  })
})

describe('an image', () => {
  it('is signed, sent, and refused by a channel until then', async () => {
    const rule = 'channels: { stable: { signed: [ci] } }\n'
    await writeFile(join(site, 'site.yaml'), `${await readFile(join(site, 'site.yaml'), 'utf8')}${rule}`)
    await git(site, 'commit', '--quiet', '--all', '--message', 'Ask for signatures')
    await json('site apply --yes')
    await json(`image push ${whole(0)} ${DATA()}`)
    const refused = await run(`image promote ${whole(0)} stable`)
    expect(refused.status).toBe(1)
    expect(refused.stderr).toContain(`compute@${short(0)} may not become compute@stable`)
    expect(refused.stderr).toContain('stable wants a signature of ci; it has none')
    const signed = await run(`image sign ${whole(0)} --signing-key ${dir}/ci.pem ${DATA()}`)
    expect(signed.stdout).toMatch(new RegExp(`^compute ${short(0)} signed by [0-9a-f]{16}\n$`))
    await json(`image push ${whole(0)} ${DATA()}`)
    const promoted = await run(['image', 'promote', whole(0), 'stable', '--reason', 'the first one'])
    expect(promoted.stdout).toBe(`compute@stable points to ${short(0)}; nodes get it with their next boot\n`)
    expect((await run(`image promote ${whole(0)} stable`)).stdout).toBe(
      `compute@stable points to ${short(0)} already\n`,
    )
  })

  it('that a program signed is taken, and what is no signature is not', async () => {
    const [{ public: key } = { public: '' }] = await json<{ public: string }[]>(`key ls --site ${site}`)
    const openssl = `t=$(mktemp); cat >"$t"; openssl pkeyutl -sign -inkey ${dir}/ci.pem -rawin -in "$t"; rm "$t"`
    const sign = (command: string): Promise<Ran> =>
      run(['image', 'sign', whole(1), '--signing-command', command, '--public', key, ...DATA().split(' ')])
    expect((await sign('echo nonsense')).stderr).toContain('what the signing command printed is no signature of')
    expect((await sign('cat >/dev/null; exit 3')).status).toBe(1)
    expect((await sign(openssl)).status).toBe(0)
    await json(`image push ${whole(1)} ${DATA()}`)
    await json(`image promote ${whole(1)} stable`)
  })

  it('that nodes follow is the one the channel points to, and after a rollback the one before', async () => {
    const because = async (): Promise<string> => (await run('boot explain n001')).stdout
    expect(await because()).toContain(digests[1])
    const back = await run(['image', 'rollback', 'compute@stable', '--reason', 'no motd'])
    expect(back.stdout).toBe(
      `compute@stable points to ${short(0)}, before to ${short(1)}; nodes get it with their next boot\n`,
    )
    expect(await because()).toContain(digests[0])
    const rows =
      await json<{ digest: string; by: string; reason: string; back: boolean }[]>('image history compute@stable')
    expect(rows.map(({ digest, by, reason, back: isBack }) => [digest, by, reason, isBack])).toEqual([
      [digests[0], 'root', 'no motd', true],
      [digests[1], 'root', '', false],
      [digests[0], 'root', 'the first one', false],
    ])
  })

  it('that a channel points to is not removed', async () => {
    const ran = await run(`image rm ${whole(0)} --yes --data ${server.data}`)
    expect(ran.stderr).toContain('is in use by compute@stable')
  })

  it('carries its signatures to another site, where openssl can check them', async () => {
    await json(`image export ${whole(0)} ${dir}/carried ${DATA()}`)
    const file = (await readdir(join(dir, 'carried'))).find(name => name.endsWith('.sig')) ?? ''
    await exec('openssl', ['pkey', '-in', `${dir}/ci.pem`, '-pubout', '-out', `${dir}/ci.pub`])
    const args = ['-verify', '-pubin', '-inkey', `${dir}/ci.pub`, '-rawin', '-in', 'manifest.json', '-sigfile', file]
    await exec('openssl', ['pkeyutl', ...args], { cwd: join(dir, 'carried') })
    await json(`image import compute ${dir}/carried --data ${dir}/elsewhere`)
    const shown = await json<{ signatures: { key: string }[] }>(`image show compute --data ${dir}/elsewhere`)
    expect(shown.signatures.map(({ key }) => `manifest.${key}.sig`)).toEqual([file])
  })

  it('that only a revoked key signed is refused', async () => {
    await json(`key revoke ci --site ${site}`)
    await json('site apply --yes')
    await json(`image push ${whole(2)} ${DATA()}`)
    await json(`image sign ${whole(2)} --signing-key ${dir}/ci.pem ${DATA()}`)
    const pushed = await run(`image push ${whole(2)} ${DATA()}`)
    expect(pushed.stderr).toMatch(/signatures of compute@sha256:\w+ are not accepted: the key ci was revoked on \d{4}-/)
    const promoted = await run(`image promote ${whole(1)} stable`)
    expect(promoted.stderr).toMatch(/stable wants a signature of ci; the key ci was revoked on/)
    // What the channel points to since before is given to no node any more.
    expect((await run('boot explain n001')).stdout).toMatch(/is not to be trusted: the key ci was revoked on/)
  })
})

it('channels are listed, and forgotten', async () => {
  await json(`image promote ${whole(2)} feature-x`)
  expect((await json<{ name: string; channel: string }[]>('image channels')).map(one => one.channel)).toEqual([
    'feature-x',
    'stable',
  ])
  expect((await run('image forget compute@feature-x')).stdout).toBe(
    'compute@feature-x forgotten with 1 image; muster image gc gives the space back\n',
  )
  expect((await run('image history compute@feature-x')).stderr).toContain('nothing was ever promoted to')
  expect((await run('image history compute')).stderr).toContain('compute is no channel such as compute@stable')
})
