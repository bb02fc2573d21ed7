import { mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname } from 'node:path'
import { describe, expect, test } from 'vitest'
import { Bench, SHELLS } from './testing.ts'

const HEX = 'ab'.repeat(32)
const PLAN = [
  'muster.node=n017',
  'muster.boot=fedcba9876543210',
  'muster.root=squashfs',
  `muster.sha256=${HEX}`,
  'muster.size=1000',
  'muster.kernel=6.1.0-9-amd64',
  '',
].join('\n')

/** A machine as /sys and /proc show it. */
const MACHINE: Readonly<Record<string, string>> = {
  'sys/class/net/eth0/address': '52:54:00:12:34:56\n',
  'sys/class/net/eth0/carrier': '1\n',
  'sys/class/net/eth0/speed': '25000\n',
  'sys/class/net/eth0/device/vendor': '0x15b3\n',
  'sys/class/net/eth1/address': '52:54:00:12:34:57\n',
  'sys/class/net/eth1/carrier': '0\n',
  'sys/class/net/eth1/speed': '-1\n',
  'sys/class/net/eth1/device/vendor': '0x15b3\n',
  'sys/class/net/lo/address': '00:00:00:00:00:00\n',
  'sys/class/dmi/id/product_uuid': '4c4c4544-0042-3510-8058-b4c04f4a4d32\n',
  'sys/class/dmi/id/product_serial': 'ABC"12\\3\n',
  'sys/class/dmi/id/sys_vendor': 'Dell Inc.\n',
  'sys/class/dmi/id/product_name': 'PowerEdge R6525\n',
  'sys/block/nvme0n1/size': '1875385008\n',
  'sys/block/nvme0n1/device/model': 'SAMSUNG MZQL2960HCJR-00A07              \n',
  'sys/block/loop0/size': '0\n',
  'proc/cpuinfo': 'processor\t: 0\nmodel name\t: AMD EPYC 7763\n\nprocessor\t: 1\nmodel name\t: AMD EPYC 7763\n',
  'proc/meminfo': 'MemTotal:       527966312 kB\nMemAvailable:   1 kB\n',
  'proc/uptime': '30.00 1.00\n',
}

const FACTS = {
  boot: '0123456789abcdef',
  mac: '52:54:00:12:34:56',
  macs: [
    { name: 'eth0', mac: '52:54:00:12:34:56', link: true, speed: 25_000 },
    { name: 'eth1', mac: '52:54:00:12:34:57', link: false },
  ],
  lldp: [],
  uuid: '4c4c4544-0042-3510-8058-b4c04f4a4d32',
  serial: 'ABC"12\\3',
  vendor: 'Dell Inc.',
  product: 'PowerEdge R6525',
  cpu: { model: 'AMD EPYC 7763', count: 2 },
  memory: 540_637_503_488,
  disks: [{ name: 'nvme0n1', size: 960_197_124_096, model: 'SAMSUNG MZQL2960HCJR-00A07' }],
}

interface Server extends AsyncDisposable {
  readonly url: string
  readonly told: unknown[]
  readonly asked: string[]
}

/** Answers a question with the next of these; the last goes on for ever. '' is an error. */
async function server(...answers: string[]): Promise<Server> {
  const told: unknown[] = []
  const asked: string[] = []
  const http = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      if (request.method === 'POST') {
        told.push(JSON.parse(body))
        response.end('id=m-7f3a\n')
      } else {
        asked.push(request.url ?? '')
        const answer = (answers.length > 1 ? answers.shift() : answers[0]) ?? ''
        if (answer === '') response.statusCode = 404
        response.end(answer)
      }
    })
  })
  await new Promise<void>(resolve => http.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}`,
    told,
    asked,
    [Symbol.asyncDispose]: () => new Promise(resolve => void http.close(() => resolve())),
  }
}

describe.concurrent.each(SHELLS)('a machine nobody knows, by %s', shell => {
  const run = async (commands: string, url = 'http://127.0.0.1:9'): Promise<string> => {
    await using bench = await Bench.create(shell)
    for (const [path, content] of Object.entries(MACHINE)) {
      await mkdir(dirname(`${bench.dir}/${path}`), { recursive: true })
      await writeFile(`${bench.dir}/${path}`, content)
    }
    const prepared = `
      PROC=${bench.dir}/proc
      uname() { echo 6.1.0-9-amd64; }
      reboot() { echo "reboot $*"; exit 7; }
      modprobe() { :; }
      sync() { :; }
      forget_plan
      plan_servers=${url} plan_boot=0123456789abcdef plan_mode=discover mac=52:54:00:12:34:56
      trap 'cat "$WORK/problem" 2>/dev/null || :' EXIT
    `
    return (await bench.run('lib patience plan report network facts discover', `${prepared}\n${commands}`)).output
  }

  test('what it says about itself', async () => {
    expect(JSON.parse(await run('facts'))).toEqual(FACTS)
  })

  test('and what took longer to find out: the switch it hangs on, its BMC', async () => {
    const lan =
      'IP Address Source       : DHCP Address\nIP Address              : 10.78.0.17\nMAC Address             : 2c:ea:7f:00:00:01\n'
    const found = JSON.parse(await run(`echo 0180c200000e >"$WORK/lldp.eth0"; printf '${lan}' >"$WORK/bmc"; facts`))
    expect(found).toEqual({
      ...FACTS,
      lldp: [{ interface: 'eth0', frame: '0180c200000e' }],
      bmc: { address: '10.78.0.17', mac: '2c:ea:7f:00:00:01' },
    })
  })

  test('the frame in what tcpdump wrote', async () => {
    const file = `printf '\\324\\303\\262\\241\\002\\0\\004\\0%016d%016d\\001\\200\\302\\0\\0\\016\\377' 0 0`
    expect(await run(`${file} | frame_of_pcap`)).toBe('0180c200000eff\n')
  })

  test('it waits until it is adopted, then goes on as that node', async () => {
    await using home = await server('wait=1\n', 'wait=1\n', PLAN)
    const output = await run('discover; print_plan', home.url)
    expect(output).toBe(
      [
        'muster.node=n017',
        'muster.boot=fedcba9876543210',
        'muster.mac=52:54:00:12:34:56',
        `muster.servers=${home.url}`,
        'muster.root=squashfs',
        `muster.sha256=${HEX}`,
        'muster.size=1000',
        'muster.overlay=50%',
        'muster.kernel=6.1.0-9-amd64',
        '',
      ].join('\n'),
    )
    expect(home.told).toEqual([FACTS])
    expect(home.asked).toEqual(Array.from({ length: 3 }, () => '/discover/next?id=m-7f3a'))
  })

  test.each([
    ['it is told so', 'reboot=1\n'],
    ['another kernel is wanted', PLAN.replace('6.1.0-9', '6.1.0-10')],
    ['the root comes another way', 'muster.node=n017\nmuster.kernel=6.1.0-9-amd64\n'],
  ])('it starts over when %s', async (_, answer) => {
    await using home = await server(answer)
    expect(await run('discover; echo went on', home.url)).toBe('reboot -f\n')
  })

  test('an answer that is not understood is no plan', async () => {
    await using home = await server(PLAN.replace('muster.size=1000', 'muster.size=$(id)'), 'wait=1\n', PLAN)
    expect(await run('pause=1; discover; echo "$plan_size"', home.url)).toBe('1000\n')
  })

  test('a server that has forgotten it is told again', async () => {
    await using home = await server('wait=1\n', '', PLAN)
    expect(await run('discover; echo "$plan_node"', home.url)).toBe('n017\n')
    expect(home.told).toEqual([FACTS, FACTS])
  })

  test('when nobody listens the attempt ends, with the reason', async () => {
    expect(await run('sleep() { :; }; discover')).toBe(
      'no server listens to this machine; is the boot server running, and can this machine reach it?\n',
    )
  })
})
