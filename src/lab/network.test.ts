import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, test } from 'vitest'
import type { MusterError } from '../lib/errors.ts'
import { exec } from '../lib/exec.ts'
import { type LabNames, labNames } from './names.ts'
import { LabNetwork, dropProgram } from './network.ts'
import { fixture, ip } from './testing.ts'

const HEAD = { cidr: '10.77.0.1/16' }

interface Link {
  readonly ifname: string
  readonly flags: readonly string[]
  readonly master?: string
  readonly stats64?: { readonly rx: { readonly packets: number } }
}

async function emptyNetwork(): Promise<{ names: LabNames; network: LabNetwork }> {
  const dir = await mkdtemp(join(tmpdir(), 'muster-network-'))
  const names = labNames(dir)
  const network = new LabNetwork(names)
  onTestFinished(async () => {
    await network.destroy()
    await rm(dir, { recursive: true })
  })
  return { names, network }
}

/** Somebody on a port of the switch, with an address. */
async function plugIn({ switch: bridge }: LabNames, port: string, cidr: string): Promise<string> {
  const namespace = `${bridge}-${port}`
  await exec('ip', ['netns', 'add', namespace])
  onTestFinished(async () => void (await exec('ip', ['netns', 'delete', namespace])))
  await exec('ip', [
    '-n',
    bridge,
    'link',
    'add',
    'name',
    port,
    'type',
    'veth',
    'peer',
    'name',
    'eth0',
    'netns',
    namespace,
  ])
  await exec('ip', ['-n', bridge, 'link', 'set', 'dev', port, 'master', '_bridge', 'up'])
  await exec('ip', ['-n', namespace, 'address', 'add', cidr, 'dev', 'eth0'])
  await exec('ip', ['-n', namespace, 'link', 'set', 'dev', 'eth0', 'up'])
  return namespace
}

const received = async ({ head }: LabNames): Promise<number> => {
  const [link] = await ip<Link>(head, '-s', 'link', 'show', 'dev', 'lab0')
  return link?.stats64?.rx.packets ?? 0
}

/** How many of so many packets arrive at the head. */
async function arriving(names: LabNames, from: string, count: number): Promise<number> {
  const before = await received(names)
  const sender = [process.execPath, fixture('send-datagrams'), '10.77.0.1', String(count)]
  await exec('ip', ['netns', 'exec', from, ...sender], { timeout: 240_000 })
  return (await received(names)) - before
}

const hasNetem = async ({ switch: bridge }: LabNames): Promise<boolean> => {
  const args = ['-n', bridge, 'qdisc', 'add', 'dev', 'lo', 'root', 'netem', 'delay', '1ms']
  return (await exec('tc', args, { allow: [2] })).exitCode === 0
}

describe('the network of a lab', () => {
  it('is a head with its addresses, a switch with a port for each node, and nothing on the host', async () => {
    const { names, network } = await emptyNetwork()
    const before = await exec('ip', ['-o', 'link'])
    await network.create([HEAD, { cidr: 'fd77::1/64' }], ['n001', 'n002'])
    const addresses = await ip<{ ifname: string; addr_info: { local: string; prefixlen: number }[] }>(
      names.head,
      'address',
    )
    const shown = addresses.map(({ ifname, addr_info: all }) => [
      ifname,
      // The kernel adds one of its own, in its own time.
      ...all.map(each => `${each.local}/${each.prefixlen}`).filter(each => !each.startsWith('fe80:')),
    ])
    expect(shown).toEqual([
      ['lo', '127.0.0.1/8', '::1/128'],
      ['lab0', '10.77.0.1/16', 'fd77::1/64'],
    ])
    const links = await ip<Link>(names.switch, 'link')
    expect(links.map(({ ifname, master = '' }) => [ifname, master])).toEqual([
      ['lo', ''],
      ['_bridge', ''],
      ['_head', '_bridge'],
      ['n001', '_bridge'],
      ['n002', '_bridge'],
    ])
    expect(links.every(({ flags }) => flags.includes('UP'))).toBe(true)
    expect(await ip(names.switch, '-6', 'address', 'show', 'dev', '_bridge')).toEqual([])
    expect((await exec('ip', ['-o', 'link'])).stdout).toEqual(before.stdout)
  })

  it('lets frames pass at once', async () => {
    const { names, network } = await emptyNetwork()
    await network.create([HEAD], [])
    const node = await plugIn(names, 'n009', '10.77.1.9/16')
    // A bridge that first listens and learns would lose all of these.
    expect(await arriving(names, node, 100)).toBeGreaterThanOrEqual(100)
  })

  it('loses the share of the packets it is told to, in both directions, until it is told otherwise', async () => {
    const { names, network } = await emptyNetwork()
    await network.create([HEAD], [])
    const node = await plugIn(names, 'n009', '10.77.1.9/16')
    await network.impair(['n009'], { loss: '10%' })
    const lossy = await arriving(names, node, 4000)
    expect(lossy).toBeGreaterThan(3300)
    expect(lossy).toBeLessThan(3900)
    const { stdout } = await exec('tc', ['-n', names.switch, 'filter', 'show', 'dev', 'n009', 'egress'])
    expect(stdout.toString('utf8')).toContain('direct-action')
    await network.impair(['n009'], { loss: '50%' })
    expect(await arriving(names, node, 4000)).toBeLessThan(2600)
    await network.impair(['n009'], {})
    expect(await arriving(names, node, 4000)).toBeGreaterThanOrEqual(4000)
  })

  it('delays packets where the kernel can, and says so where it cannot', async () => {
    const { names, network } = await emptyNetwork()
    await network.create([HEAD], ['n001'])
    const expected = (await hasNetem(names))
      ? /netem .* delay 20ms/
      : /^LAB_NEEDS: this machine's kernel cannot delay packets: load netem: modprobe sch_netem$/
    const delayed = await network.impair(['n001'], { delay: '20ms' }).then(
      () =>
        exec('tc', ['-n', names.switch, 'qdisc', 'show', 'dev', 'n001']).then(({ stdout }) => stdout.toString('utf8')),
      (error: MusterError) => `${error.code}: ${error.message}: ${error.hint}`,
    )
    expect(delayed).toMatch(expected)
    await network.impair(['n001'], {})
    const { stdout } = await exec('tc', ['-n', names.switch, 'qdisc', 'show', 'dev', 'n001'])
    expect(stdout.toString('utf8')).not.toContain('netem')
  })

  it('has ports whose cable can be pulled', async () => {
    const { names, network } = await emptyNetwork()
    await network.create([HEAD], ['n001'])
    const isUp = async (): Promise<boolean | undefined> =>
      (await ip<Link>(names.switch, 'link', 'show', 'dev', 'n001'))[0]?.flags.includes('UP')
    await network.setPort('n001', 'down')
    expect(await isUp()).toBe(false)
    await network.setPort('n001', 'up')
    expect(await isUp()).toBe(true)
  })

  it('goes away as a whole, also when only a part of it is there', async () => {
    const { names, network } = await emptyNetwork()
    expect(await network.destroy()).toBe(false)
    await network.create([HEAD], ['n001'])
    expect(await network.leftovers()).toEqual([names.head, names.switch])
    expect(await network.destroy()).toBe(true)
    expect(await network.leftovers()).toEqual([])
    await exec('ip', ['netns', 'add', names.switch])
    expect(await network.destroy()).toBe(true)
    // A name with nothing behind it: `ip netns add` was killed half way.
    await writeFile(`/run/netns/${names.head}`, '')
    expect(await network.destroy()).toBe(true)
    expect(await network.leftovers()).toEqual([])
    await network.create([HEAD], ['n001'])
  })

  it.each([
    [{ loss: '10' }, '10 is not a share such as 10%'],
    [{ loss: '101%' }, '101% is not a share such as 10%'],
    [{ delay: '1s' }, '1s is not a delay such as 20ms'],
  ])('refuses %j', async (impairment, message) => {
    const { network } = await emptyNetwork()
    await network.create([HEAD], ['n001'])
    await expect(network.impair(['n001'], impairment)).rejects.toMatchObject({ code: 'USAGE', message })
  })
})

test.each([
  [0, undefined],
  [0.25, '4,32 0 0 4294963256,53 0 1 1073741824,6 0 0 4294967295,6 0 0 2'],
  [1, '1,6 0 0 2'],
])('a loss of %d is the program %j', (share, program) => {
  expect(dropProgram(share)).toBe(program)
})
