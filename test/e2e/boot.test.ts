import { appendFile, open, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { EventReply } from '../../src/api/schemas.ts'
import type { Manifest } from '../../src/images/manifest.ts'
import { exec } from '../../src/lib/exec.ts'
import { openImageStore } from '../../src/images/store/store.ts'
import { MUSTER, type Program, start } from '../cli/testing.ts'
import { type Cluster, type MachineReply, commit, makeCluster, phasesOf, talkingSwitch } from './testing.ts'

let cluster: Cluster
beforeAll(async () => {
  cluster = await makeCluster()
})
afterAll(() => cluster[Symbol.asyncDispose]())

const image = async (): Promise<{ digest: string; manifest: Manifest }> =>
  (await openImageStore(join(cluster.data, 'images'))).resolve('node')
const fileOf = async (type: string): Promise<string> => {
  const store = await openImageStore(join(cluster.data, 'images'))
  const { manifest } = await image()
  return store.pathOf(manifest.artefacts.find(artefact => artefact.type === type)?.sha256 ?? '')
}

/** Changes a byte in the middle of a file, or changes it back. */
async function flip(file: string): Promise<void> {
  await exec('chmod', ['644', file])
  await using handle = await open(file, 'r+')
  const { size } = await handle.stat()
  const byte = Buffer.alloc(1)
  await handle.read(byte, 0, 1, Math.floor(size / 2))
  byte[0] = (byte[0] ?? 0) ^ 0xff
  await handle.write(byte, 0, 1, Math.floor(size / 2))
}

/** Processes of that name that belong to this cluster. */
async function ours(name: string): Promise<number[]> {
  const { stdout } = await exec('pidof', [name], { allow: [1] })
  const pids = stdout.toString('utf8').trim().split(' ').filter(Boolean)
  const told = await Promise.all(pids.map(async pid => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')))
  return pids.filter((_, index) => told[index]?.includes(cluster.dir)).map(Number)
}

const inHead = async (...words: [string, ...string[]]): Promise<string> => {
  const [command, args] = cluster.lab.inHead(words[0], words.slice(1))
  return (await exec(command, args, { allow: [1] })).stdout.toString('utf8')
}

describe('two machines with BIOS, squashfs in RAM', () => {
  it('boot at once and are ready, every step timed', async () => {
    const ran = await cluster.up('--nodes 2')
    expect(ran).toMatchObject({ status: 0 })
    const { digest } = await image()
    for (const name of ['n001', 'n002']) {
      const boot = await cluster.ready(name)
      expect(phasesOf(boot)).toEqual(['dhcp', 'loader', 'kernel', 'initrd', 'fetch', 'root', 'agent', 'ready'])
      expect(boot.image).toBe(digest)
      const { observed } = await cluster.until(`${name} is well`, async () => {
        const node = await cluster.node(name)
        return node.observed.health === undefined ? undefined : node
      })
      expect(observed).toMatchObject({ boot: { value: 'ready' }, image: { value: digest }, health: { value: 'ok' } })
    }
  })

  it('know their names and addresses, and write to an overlay of the size that was asked for', async () => {
    const said = await cluster.console('n001')
    expect(said).toMatch(/muster-agent: \{"hostname":"n001".*"addresses":\["10\.77\.1\.1\/16"/)

    const [, kind, kib] = /root-check: \S+ (\S+) size=(\d+)/.exec(said) ?? []
    expect(kind).toBe('overlay')
    expect(Number(kib) * 1024).toBeGreaterThan(190_000_000)
    expect(Number(kib) * 1024).toBeLessThan(210_000_000)
  })

  it('have names, forward and backward', async () => {
    expect(await inHead('busybox', 'nslookup', 'n002.e2e.cluster', '10.77.0.1')).toContain('10.77.1.2')
    expect(await inHead('busybox', 'nslookup', '10.77.1.2', '10.77.0.1')).toContain('n002.e2e.cluster')
  })

  it('are explained', async () => {
    const { stdout } = await cluster.muster('boot explain n001')
    expect(stdout).toContain('is plugged in at sw1 1, the place of n001')
    expect(stdout).toContain('asks http://10.77.0.1:7180')
    expect((await cluster.muster('node timeline n001')).stdout).toMatch(
      /dhcp .* loader .* kernel .* initrd .* fetch .* root .* agent .* ready +\d/,
    )
  })

  it('get there although the server is killed in the middle of a download, and the daemon that gives out addresses as well', async () => {
    const before = await cluster.ready('n001')
    await cluster.lab.power(['n001'], 'cycle')
    await cluster.boot('n001', boot => boot.id !== before.id && boot.phases.at(-1)?.phase === 'fetch')
    await cluster.lab.stopServer('killed')
    await cluster.lab.startServer()
    const other = await cluster.ready('n002')
    const daemons = await ours('dnsmasq')
    expect(daemons.length).toBeGreaterThan(0)
    for (const pid of daemons) process.kill(pid, 'SIGKILL')
    await cluster.lab.power(['n002'], 'cycle')
    expect(phasesOf(await cluster.ready('n001', before)).slice(-3)).toEqual(['root', 'agent', 'ready'])
    expect(phasesOf(await cluster.ready('n002', other))[0]).toBe('dhcp')
  })

  it('get there although every tenth packet is lost', async () => {
    const before = await cluster.ready('n001')
    await cluster.lab.impair(['n001'], { loss: '10%' })
    await cluster.lab.power(['n001'], 'cycle')
    expect(phasesOf(await cluster.ready('n001', before)).at(-1)).toBe('ready')
    await cluster.lab.impair(['n001'], {})
  })

  it('never run a byte that is wrong: they say so, and go on when it is right again', async () => {
    const root = await fileOf('squashfs')
    const before = await cluster.ready('n002')
    await flip(root)
    // What was in memory is gone with the process.
    await cluster.lab.stopServer()
    await cluster.lab.startServer()
    await cluster.lab.power(['n002'], 'cycle')
    const failed = await cluster.boot('n002', boot => boot.id !== before.id && boot.failed !== undefined)
    expect(failed.failed?.reason).toMatch(/503|digest|fetch/i)
    // The event, not the state: it tries again by itself, and may be at it already.
    const { nodes } = await cluster.until('the event that it failed', async () => {
      const { items } = await cluster.client.get<{ items: EventReply[] }>('/api/v1/events', {
        kind: 'node.boot.failed',
      })
      return items[0]
    })
    expect(nodes).toBe('n002')
    expect(phasesOf(failed)).not.toContain('root')
    await flip(root)
    await cluster.ready('n002', before)
  })

  it('leave nothing behind', async () => {
    await cluster.down()
    expect((await cluster.lab.status()).state).toBe('down')
  })
})

describe('a machine with UEFI, the whole image as one cpio', () => {
  afterEach(() => cluster.down())

  it('boots through TFTP and autoexec.ipxe, without a second stage', async () => {
    await exec('sed', ['-i', 's/^n\\[001-008\\]:/&\\n  boot: { form: cpio }/', join(cluster.site, 'nodes.yaml')])
    await commit(cluster.site, 'A whole image in memory')
    const ran = await cluster.up('--nodes 1 --firmware uefi --memory 2GiB')
    expect(ran).toMatchObject({ status: 0 })
    expect(phasesOf(await cluster.ready('n001'))).toEqual(['dhcp', 'loader', 'kernel', 'agent', 'ready'])
    expect(await cluster.console('n001')).toMatch(/root-check: \S+ rootfs/)
  })
})

describe('a machine nobody knows', () => {
  afterEach(() => cluster.down())

  it('says what it is, is adopted, and goes on booting as that node', async () => {
    await exec('sed', ['-i', '/form: cpio/d', join(cluster.site, 'nodes.yaml')])
    await commit(cluster.site, 'squashfs again')
    const ran = await cluster.up('--nodes 0 --strangers 1 --no-wait')
    expect(ran).toMatchObject({ status: 0 })
    await using _ = await talkingSwitch(cluster.lab, 'sw9', 'stranger1')
    const machine = await cluster.until('the machine is discovered, and has heard its switch', async () => {
      const { items } = await cluster.client.get<{ items: MachineReply[] }>('/api/v1/machines')
      return items.find(({ neighbours }) => neighbours.length > 0)
    })
    expect(machine).toMatchObject({
      neighbours: [{ switch: 'sw9', port: 'stranger1' }],
      node: null,
      facts: { serial: 'LAB-stranger1', cpu: { count: 1 } },
    })
    expect(machine.facts.memory).toBeGreaterThan(2 ** 30)
    expect(machine.facts.disks.length).toBe(1)
    expect((await cluster.muster('discover ls')).stdout).toContain(machine.mac)
    const adopted = await cluster.muster(`discover adopt ${machine.id} as n005`)
    expect(adopted).toMatchObject({ status: 0 })
    const boot = await cluster.ready('n005')
    // Without another start: it never asked for a script of n005.
    expect(phasesOf(boot)).toEqual(['initrd', 'fetch', 'root', 'agent', 'ready'])
    expect(await readFile(join(cluster.site, 'nodes.yaml'), 'utf8')).toContain(machine.mac)
    const name = await cluster.until(
      'it has said its name',
      async () => /muster-agent: \{"hostname":"([^"]*)"/.exec(await cluster.console('stranger1'))?.[1],
    )
    expect(name).toBe('n005')
  })
})

describe('while the control role is down', () => {
  afterEach(() => cluster.down())

  it('a boot server that was restarted boots nodes alone, and tells what happened when it is back', async () => {
    const { data, site, lab, client } = cluster
    const control = (): Program =>
      start(MUSTER, ['serve', '--role', 'control', '--site', site, '--data', data, '--listen', '127.0.0.1:0'])
    const answers = (): Promise<unknown> =>
      cluster.until('the control role answers', () => client.get('/api/v1/status'))
    const mac = '52:54:00:e2:e0:01'
    {
      await using first = control()
      await answers()
      await client.send('POST', '/api/v1/places', { places: [{ mac, switch: 'sw1', port: '1' }] })
      await client.send('POST', '/api/v1/site/apply', { allowDirty: true })
      const alone = join(cluster.dir, 'alone')
      const { manifest } = await image()
      await lab.up({
        nodes: [{ name: 'n001', mac, memory: 1536 }],
        firmware: 'bios',
        accelerator: 'tcg',
        addresses: [{ cidr: '10.77.0.1/16' }],
        off: true,
        server: {
          command: MUSTER,
          args: ['serve', '--role', 'boot', '--control', join(data, 'muster.sock'), '--data', alone],
          log: join(lab.dir, 'serve.log'),
          ready: async () => {
            const copy = await openImageStore(join(alone, 'images'))
            const wanted = manifest.artefacts.filter(({ type }) => ['kernel', 'initrd', 'squashfs'].includes(type))
            await cluster.until('the images have arrived', async () => {
              const here = await Promise.all(wanted.map(({ sha256 }) => copy.has(sha256)))
              const view = await readFile(join(alone, 'boot/view.json'), 'utf8')
              return here.every(Boolean) && !view.includes('-partial') ? true : undefined
            })
          },
        },
      })
      first.child.kill('SIGKILL')
      await first.ended
    }
    await lab.stopServer('killed')
    await lab.startServer()
    await lab.power(['n001'], 'on')
    await cluster.until('the agent has said what it runs', async () =>
      (await cluster.console('n001')).includes('muster-agent: {') ? true : undefined,
    )
    await using _ = control()
    await answers()
    const boot = await cluster.boot('n001', found => found.mac === mac && found.phases.at(-1)?.phase === 'ready')
    expect(phasesOf(boot)).toEqual(['dhcp', 'loader', 'kernel', 'initrd', 'fetch', 'root', 'agent', 'ready'])
  })
})

describe('a node that follows a channel of a site with keys', () => {
  afterEach(() => cluster.down())

  it('boots what was promoted, and what was before after a rollback; it checks the signature itself', async () => {
    const at = `--site ${cluster.site} --data ${cluster.data}`
    const run = async (words: string): Promise<string> => {
      const ran = await cluster.muster(words)
      expect(ran).toMatchObject({ status: 0 })
      return ran.stdout
    }
    const build = async (): Promise<string> => {
      await run(`image build node ${at}`)
      await run(`image sign node --signing-key ${key} ${at}`)
      return (await image()).digest
    }
    const key = join(cluster.dir, 'ci.pem')
    await rm(key, { force: true })
    await run(`key new ci --signing-key ${key} --site ${cluster.site}`)
    await exec('sed', ['-i', 's/image: node,/image: node@stable,/', join(cluster.site, 'site.yaml')])
    await appendFile(join(cluster.site, 'site.yaml'), 'channels: { stable: { signed: [ci] } }\n')
    await commit(cluster.site, 'Nodes follow a channel')
    const first = await build()
    await run(`lab up --site ${cluster.site} --port 0 --json --nodes 1`)
    const booted = await cluster.ready('n001')
    expect(booted.image).toBe(first)
    expect(await cluster.console('n001')).toMatch(/verify: the key [0-9a-f]{16} has signed the image/)
    await run('image promote node stable')

    await appendFile(join(cluster.site, 'images/node/files/root-check'), '# newer\n')
    await commit(cluster.site, 'A newer image')
    const second = await build()
    expect(second).not.toBe(first)
    await run('image promote node stable --reason newer')
    await cluster.lab.power(['n001'], 'cycle')
    const newer = await cluster.ready('n001', booted)
    expect(newer.image).toBe(second)

    await run('image rollback node@stable --reason worse')
    await cluster.lab.power(['n001'], 'cycle')
    const older = await cluster.boot(
      'n001',
      boot => ![booted.id, newer.id].includes(boot.id) && boot.phases.at(-1)?.phase === 'ready',
    )
    expect(older.image).toBe(first)
  })
})
