import { mkdir, writeFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { Bench, SHELLS } from './testing.ts'

interface Interface {
  readonly mac: string
  readonly link?: boolean
  /** Nothing stands behind it: a bridge, a tunnel. */
  readonly virtual?: boolean
}

describe.each(SHELLS)('the network is brought up, by %s', shell => {
  /** Programs that would change the network of this machine say what they were told instead. */
  const FAKES = `
    sleep() { :; }
    ip() { echo "ip $*" >>"$WORK/calls"; }
    udhcpc() { echo "udhcpc $*" >>"$WORK/calls"; echo 10.77.1.1/16 >"$WORK/address"; }
    modprobe() { :; }
    wait_for() { shift; "$@"; }
    now() { clock=100; }
  `

  const start = async (plan: string, interfaces: Readonly<Record<string, Interface>>): Promise<string> => {
    await using bench = await Bench.create(shell)
    for (const [name, { mac, link = false, virtual = false }] of Object.entries(interfaces)) {
      const dir = `${bench.dir}/sys/class/net/${name}`
      await mkdir(virtual ? dir : `${dir}/device`, { recursive: true })
      await writeFile(`${dir}/address`, `${mac}\n`)
      await writeFile(`${dir}/carrier`, link ? '1\n' : '0\n')
    }
    const words = `forget_plan; echo "${plan}" >"$WORK/plan"; read_words <"$WORK/plan"`
    const end = 'trap \'cat "$WORK/problem" 2>/dev/null || grep -v "flush\\|down" "$WORK/calls"\' EXIT'
    const { output } = await bench.run('lib patience plan network', `${FAKES}\n${words}\n${end}\nstart_network`)
    return output.replaceAll(`${bench.dir}/work`, 'WORK')
  }

  const DHCP = '-n -t 6 -T 3 -V  -O mtu -s /lib/muster/udhcpc -p WORK/udhcpc.pid'
  const [A, B] = ['52:54:00:00:00:0a', '52:54:00:00:00:0b']

  test('on the interface the machine booted from, by DHCP', async () => {
    expect(
      await start(`muster.mac=${B}`, {
        br0: { mac: B, virtual: true },
        eth0: { mac: A, link: true },
        eth1: { mac: B, link: true },
      }),
    ).toBe(`ip link set dev eth1 up\nudhcpc -i eth1 ${DHCP}\n`)
  })

  test('on the first with a link when that is not known, or not there', async () => {
    const interfaces = { eth0: { mac: A }, eth1: { mac: B, link: true } }
    const expected = `ip link set dev eth0 up\nip link set dev eth1 up\nip link set dev eth1 up\nudhcpc -i eth1 ${DHCP}\n`
    expect(await start('', interfaces)).toBe(expected)
    expect(await start('muster.mac=52:54:00:00:00:0c', interfaces)).toBe(expected)
  })

  test('with an address of the plan', async () => {
    expect(await start(`muster.mac=${A} muster.ip=10.77.1.1/16,10.77.0.1`, { eth0: { mac: A, link: true } })).toBe(
      'ip link set dev eth0 up\nip addr replace 10.77.1.1/16 dev eth0\nip route replace default via 10.77.0.1 dev eth0\n',
    )
  })

  test('in a VLAN', async () => {
    expect(await start(`muster.mac=${A} muster.vlan=12`, { eth0: { mac: A, link: true } })).toBe(
      `ip link set dev eth0 up\nip link show dev vlan12\nip link set dev vlan12 up\nudhcpc -i vlan12 ${DHCP}\n`,
    )
  })

  test.each([
    [
      'no driver',
      {},
      'this machine has no network interface that the kernel knows; name its driver in the recipe: kernel: { modules: [...] }\n',
    ],
    [
      'no cable anywhere',
      { eth0: { mac: A }, eth1: { mac: '52:54:00:00:00:0c' } },
      'no network interface has a link (eth0 eth1 seen); look at the cable and the port of the switch\n',
    ],
    [
      'no cable where it booted from',
      { eth0: { mac: B }, eth1: { mac: A, link: true } },
      `interface eth0 (${B}) has no link; look at the cable and the port of the switch\n`,
    ],
  ])('%s is said as it is', async (_, interfaces, problem) => {
    expect(await start(`muster.mac=${B}`, interfaces)).toBe(problem)
  })
})

describe.each(SHELLS)('what a DHCP server said is taken over, by %s', shell => {
  const bound = async (env: Readonly<Record<string, string>>): Promise<string> => {
    await using bench = await Bench.create(shell)
    const commands = `
      ip() { echo "ip $*"; }
      . "$WORK/bound"
      if ( bound ); then cat "$WORK/resolv.conf"; else echo refused; fi
    `
    const part = `sed -n '/^bound() {/,/^}/p' "$SCRIPTS/udhcpc" >"$WORK/bound"`
    return (await bench.run('lib plan', `${part}\n${commands}`, { interface: 'eth0', ...env })).output
  }

  test('address, gateway, frame size and name servers', async () => {
    const env = { ip: '10.77.1.1', mask: '16', router: '10.77.0.1 10.77.0.2', mtu: '9000', dns: '10.77.0.1 10.77.0.2' }
    expect(await bound(env)).toBe(
      [
        'ip addr replace 10.77.1.1/16 dev eth0',
        'ip link set dev eth0 mtu 9000',
        'ip route replace default via 10.77.0.1 dev eth0',
        'nameserver 10.77.0.1',
        'nameserver 10.77.0.2',
        '',
      ].join('\n'),
    )
  })

  test('an address is enough; nonsense beside it is passed over', async () => {
    expect(await bound({ ip: '10.77.1.1', mask: '16', router: 'gw;id', mtu: '99999', dns: '$(id)' })).toBe(
      'ip addr replace 10.77.1.1/16 dev eth0\n',
    )
  })

  test('nonsense for an address is refused', async () => {
    expect(await bound({ ip: '10.77.1.1 dev lo', mask: '16' })).toBe('refused\n')
  })
})
