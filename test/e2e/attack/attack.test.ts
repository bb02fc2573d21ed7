import { createHash } from 'node:crypto'
import { cp, mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { BootReply, EventReply } from '../../../src/api/schemas.ts'
import { exec } from '../../../src/lib/exec.ts'
import { type Cluster, commit, makeCluster } from '../testing.ts'

/** Two nodes, each with a secret of its own. What is on A wants that of B. */
const [A, B] = ['n001', 'n002']
const SECRETS: Readonly<Record<string, string>> = { [A]: `CANARY-A-${randomText()}`, [B]: `CANARY-B-${randomText()}` }
/** As they are, and as they begin in base64. */
const FORMS = Object.values(SECRETS).flatMap(secret => [secret, Buffer.from(secret).toString('base64').slice(0, 20)])
const ADDRESS_OF_B = '10.77.1.2'
const HEAD = '10.77.0.1'
/** What a node is given: read by root alone. */
const fileOf = (node: string): string => `token = ${SECRETS[node]}\n`
const CHECK = `#!/bin/sh
[ -e /run/secret-check ] || printf 'secret-check: %s %s\\n' "$(stat -c '%a %U' /etc/secret.conf)" "$(sha256sum </etc/secret.conf)" >/dev/console
: >/run/secret-check
`
const ATTACK = `#!/bin/sh
exec 9>/dev/console
setpriv --reuid=65534 --regid=65534 --clear-groups sh /usr/local/lib/attack
sh /usr/local/lib/attack
`

let cluster: Cluster
let boots: Record<string, BootReply>

beforeAll(async () => {
  cluster = await makeCluster()
  const { site, dir } = cluster
  const files = join(site, 'files')
  await mkdir(files)
  await writeFile(join(files, 'secret.conf.j2'), 'token = {{ vars.token }}\n')
  await writeFile(join(files, 'secret-check'), CHECK)
  await writeFile(join(files, 'attack-all'), ATTACK)
  await cp(fileURLToPath(new URL('attack.sh', import.meta.url)), join(files, 'attack'))
  await append('site.yaml', [
    '  files:',
    '    /etc/secret.conf: { source: secret.conf.j2, mode: "0400" }',
    '    /etc/muster/health.d/secret: { source: secret-check, mode: "0755" }',
    '    /usr/local/lib/attack: attack',
    '    /usr/local/lib/attack-all: attack-all',
  ])
  await append(
    'nodes.yaml',
    [A, B].map(node => `${node}:\n  vars: { token: later }`),
  )
  await commit(site, 'Files with secrets')
  const key = join(dir, 'age.key')
  await exec('rm', ['-f', key])
  await ran(`secret keygen --site ${site} --key ${key}`)
  for (const [node, value] of Object.entries(SECRETS))
    await ran(`secret set --site ${site} nodes.yaml ${node}.vars.token`, value)
  const { status, stderr } = await cluster.up('--nodes 2', { MUSTER_AGE_KEY_FILE: key })
  if (status !== 0) throw new Error(stderr)
  boots = { [A]: await cluster.ready(A), [B]: await cluster.ready(B) }
})
afterAll(async () => cluster[Symbol.asyncDispose]())

const append = async (name: string, lines: readonly string[]): Promise<void> =>
  writeFile(join(cluster.site, name), `${await readFile(join(cluster.site, name), 'utf8')}${lines.join('\n')}\n`)

async function ran(words: string, input?: string): Promise<string> {
  const { status, stdout, stderr } = await cluster.muster(words, input === undefined ? {} : { input })
  if (status !== 0) throw new Error(`muster ${words}: ${stderr}`)
  return stdout
}

describe('a node', () => {
  it('has its secret in a file that root alone can read, before its system starts', async () => {
    for (const node of [A, B]) {
      const [, mode, owner, sha256] = await cluster.until(
        `${node} looks at its file`,
        async () => /secret-check: (\d+) (\w+) ([0-9a-f]{64})/.exec(await cluster.console(node)) ?? undefined,
      )
      expect({ mode, owner, sha256 }).toEqual({ mode: '400', owner: 'root', sha256: digest(fileOf(node)) })
    }
  })

  it('gets a change while it runs, and an intruder on it gets nothing of another one, nor a second credential', async () => {
    const [a, b] = [boots[A], boots[B]]
    const target = {
      http: `http://${HEAD}:7180`,
      https: `https://${HEAD}:7181`,
      api: `http://${HEAD}:7171`,
      a_mac: a?.mac,
      a_boot: a?.id,
      b: B,
      b_mac: b?.mac,
      b_id: b?.mac.replaceAll(':', ''),
      b_boot: b?.id,
      b_address: ADDRESS_OF_B,
      b_sha256: digest(fileOf(B)),
    }
    const lines = Object.entries(target).map(([name, value]) => `${name}=${value}\n`)
    await writeFile(join(cluster.site, 'files/target'), lines.join(''))
    const then = 'systemd-run --no-block --unit=attack sh /usr/local/lib/attack-all'
    await exec('sed', [
      '-i',
      `s|^${A}:|&\\n  files: { /etc/attack/target: { source: target, when: live, then: "${then}" } }|`,
      join(cluster.site, 'nodes.yaml'),
    ])
    await commit(cluster.site, 'An intruder')
    await ran(`site apply --yes --site ${cluster.site}`)
    const said = await cluster.until('the intruder gives up', async () => {
      const text = await cluster.console(A)
      return /attack: root made/.test(text) ? text : undefined
    })
    const results = [...said.matchAll(/attack: (\w+) made (\d+) attempts, (\d+) leaks/g)].map(
      ([, who, made, leaks]) => ({
        who,
        made: Number(made),
        leaks: Number(leaks),
      }),
    )
    process.stdout.write(`${results.map(({ who, made }) => `${who}: ${made} attempts`).join(', ')}\n`)
    expect(said.match(/attack: LEAK.*/g) ?? []).toEqual([])
    expect(results.map(({ who, leaks }) => ({ who, leaks }))).toEqual([
      { who: 'nobody', leaks: 0 },
      { who: 'root', leaks: 0 },
    ])
    for (const { made } of results) expect(made).toBeGreaterThan(200)
  })

  it('that is attacked stays what it is, and those who run the cluster are told', async () => {
    const { items } = await cluster.client.get<{ items: EventReply[] }>('/api/v1/events', {
      kind: 'node.enrol.refused',
    })
    expect(items.map(({ nodes }) => nodes)).toEqual(expect.arrayContaining([A, B]))
    const { observed } = await cluster.until(`${B} is well`, async () => {
      const node = await cluster.node(B)
      return node.observed.health?.value === 'ok' ? node : undefined
    })
    expect(observed).toMatchObject({ boot: { value: 'ready' } })
    const enrolled = await cluster.client.get<{ items: EventReply[] }>('/api/v1/events', { kind: 'node.enrolled' })
    expect(new Set(enrolled.items.map(({ nodes }) => nodes))).toEqual(new Set([A, B]))
    expect(enrolled.items).toHaveLength(2)
  })
})

describe('a secret', () => {
  it('is in no file of the server, no backup and no log', async () => {
    const backup = join(cluster.dir, 'backup.db')
    await exec('rm', ['-f', backup])
    await ran(`backup ${backup}`)
    // Proof that it would be found. Disks of nodes are theirs, and one line of gigabytes.
    const control = join(cluster.dir, 'control')
    await writeFile(control, fileOf(B))
    const { stdout } = await exec('grep', ['-rlaF', '--exclude=disk.img', '-f', '-', cluster.dir], {
      input: `${FORMS.join('\n')}\n`,
      // Files come and go while it searches.
      allow: [2],
      timeout: 0,
    })
    await rm(control)
    expect(stdout.toString('utf8')).toBe(`${control}\n`)
  })

  it('is on no command line and in no environment', async () => {
    const pids = (await readdir('/proc')).filter(name => /^\d+$/.test(name))
    const found: string[] = []
    for (const pid of pids)
      for (const name of ['cmdline', 'environ']) {
        const path = `/proc/${pid}/${name}`
        if (holdsSecret(await readFile(path).catch(() => Buffer.alloc(0)))) found.push(path)
      }
    expect(found).toEqual([])
  })

  it('is in no reply of the API', async () => {
    const { paths } = await cluster.client.get<{ paths: Record<string, object> }>('/api/v1/openapi.json')
    const found: string[] = []
    let answered = 0
    for (const [path, methods] of Object.entries(paths)) {
      if (!('get' in methods) || path.endsWith('/watch')) continue
      const real = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => (name === 'name' ? B : 'x'))
      const { stdout } = await exec(
        'curl',
        ['--silent', '--max-time', '10', '--unix-socket', join(cluster.data, 'muster.sock'), `http://muster${real}`],
        { allow: [28] },
      )
      answered++
      if (holdsSecret(stdout)) found.push(path)
    }
    expect(answered).toBeGreaterThan(20)
    expect(found).toEqual([])
  })
})

const digest = (text: string): string => createHash('sha256').update(text).digest('hex')

function holdsSecret(bytes: Buffer): boolean {
  return FORMS.some(form => bytes.includes(form))
}

function randomText(): string {
  return createHash('sha256').update(`${process.pid} ${Date.now()} ${Math.random()}`).digest('hex').slice(0, 24)
}
