import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Decision, decideFor } from './decide.ts'
import { type BootContext, firstScript, kernelArguments, machineScript } from './ipxe.ts'
import { MAC, STRANGER, boots, indexOf, prov } from './testing.ts'
import type { BootInterface, BootNode } from './view.ts'

const ONE: BootContext['urls'] = ['http://10.77.0.1:7180']
const TWO: BootContext['urls'] = ['http://10.77.0.1:7180', 'http://10.77.0.2:7180']
const CONTEXT: BootContext = { urls: ONE, boot: '0123456789abcdef', mac: MAC, shell: false }

/** What n1 is given. */
const given = (more: Partial<BootNode> = {}, one: Partial<BootInterface> = {}): Decision =>
  decideFor(indexOf({ nodes: [boots('n1', { interfaces: [prov('10.77.1.1', { mac: MAC, ...one })], ...more })] }), MAC)

describe('the script every machine starts with', () => {
  it('asks each server in turn, for ever', () => {
    expect(firstScript({ urls: TWO })).toBe(`#!ipxe
# Every machine starts here; which script is its own, the boot server says.
:address
isset \${netX/ip} && goto ask ||
ifconf --configurator dhcp && goto ask ||
echo Muster: no answer to DHCP on any interface: is the cable in, and the port in the right VLAN? Trying again.
sleep 5
goto address
:ask
set server:int32 0
set round:int32 0
:next
goto server_\${server}
:server_0
set base http://10.77.0.1:7180
goto try
:server_1
set base http://10.77.0.2:7180
goto try
:server_2
set server:int32 0
inc round
goto pause_\${round}
:pause_1
sleep 2
goto next
:pause_2
sleep 5
goto next
:pause_3
sleep 10
goto next
:pause_4
sleep 20
goto next
:pause_5
sleep 30
goto next
:pause_6
sleep 30
goto next
:pause_7
sleep 30
goto next
:pause_8
sleep 30
goto next
:pause_9
sleep 30
goto next
:pause_10
echo Muster: still no success; asking anew what to boot.
sleep 30
chain --replace --autofree http://10.77.0.1:7180/boot.ipxe ||
chain --replace --autofree http://10.77.0.2:7180/boot.ipxe ||
set round:int32 0
goto next
:try
echo Muster: asking \${base} what \${netX/mac} should boot
chain --replace --autofree \${base}/boot/script?mac=\${netX/mac:hexhyp}&uuid=\${uuid}&platform=\${platform}&arch=\${buildarch}&serial=\${serial:uristring}&product=\${product:uristring} || goto failed
:failed
echo Muster: \${base} did not answer: \${errno}
inc server
goto next
`)
  })

  it('goes over a VLAN where the site says so', () => {
    expect(firstScript({ urls: ONE }, 12)).toBe(`#!ipxe
# Every machine starts here; which script is its own, the boot server says.
vcreate --tag 12 net0 || echo Muster: VLAN 12 was there already
:address
isset \${netX/ip} && goto ask ||
ifconf --configurator dhcp net0-12 && goto ask ||
echo Muster: no answer to DHCP on any interface: is the cable in, and the port in the right VLAN? Trying again.
sleep 5
goto address
:ask
set server:int32 0
set round:int32 0
:next
goto server_\${server}
:server_0
set base http://10.77.0.1:7180
goto try
:server_1
set server:int32 0
inc round
goto pause_\${round}
:pause_1
sleep 2
goto next
:pause_2
sleep 5
goto next
:pause_3
sleep 10
goto next
:pause_4
sleep 20
goto next
:pause_5
sleep 30
goto next
:pause_6
sleep 30
goto next
:pause_7
sleep 30
goto next
:pause_8
sleep 30
goto next
:pause_9
sleep 30
goto next
:pause_10
echo Muster: still no success; asking anew what to boot.
sleep 30
chain --replace --autofree http://10.77.0.1:7180/boot.ipxe ||
set round:int32 0
goto next
:try
echo Muster: asking \${base} what \${netX/mac} should boot
chain --replace --autofree \${base}/boot/script?mac=\${netX/mac:hexhyp}&uuid=\${uuid}&platform=\${platform}&arch=\${buildarch}&serial=\${serial:uristring}&product=\${product:uristring} || goto failed
:failed
echo Muster: \${base} did not answer: \${errno}
inc server
goto next
`)
  })
})

describe('the script of a machine', () => {
  it('that boots a squashfs', () => {
    expect(machineScript(given({ args: ['console=ttyS0,115200'] }), { ...CONTEXT, urls: TWO })).toBe(`#!ipxe
# n1 boots compute sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, squashfs in RAM
set server:int32 0
set round:int32 0
:next
goto server_\${server}
:server_0
set base http://10.77.0.1:7180
goto try
:server_1
set base http://10.77.0.2:7180
goto try
:server_2
set server:int32 0
inc round
goto pause_\${round}
:pause_1
sleep 2
goto next
:pause_2
sleep 5
goto next
:pause_3
sleep 10
goto next
:pause_4
sleep 20
goto next
:pause_5
sleep 30
goto next
:pause_6
sleep 30
goto next
:pause_7
sleep 30
goto next
:pause_8
sleep 30
goto next
:pause_9
sleep 30
goto next
:pause_10
echo Muster: still no success; asking anew what to boot.
sleep 30
chain --replace --autofree http://10.77.0.1:7180/boot.ipxe ||
chain --replace --autofree http://10.77.0.2:7180/boot.ipxe ||
set round:int32 0
goto next
:try
imgfree
echo Muster: n1 boots compute sha256:aaaaaaaaaaaa
imgfetch --name step \${base}/boot/step?boot=0123456789abcdef&mac=52:54:00:00:00:01&step=kernel && imgfree step ||
kernel --name kernel \${base}/blob/1111111111111111111111111111111111111111111111111111111111111111 initrd=initrd muster.root=squashfs muster.sha256=3333333333333333333333333333333333333333333333333333333333333333 muster.size=300000000 muster.overlay=50% muster.kernel=6.1.0-30-amd64 muster.node=n1 muster.boot=0123456789abcdef muster.mac=52:54:00:00:00:01 muster.servers=http://10.77.0.1:7180,http://10.77.0.2:7180 muster.image=sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa systemd.hostname=n1 console=ttyS0,115200 || goto failed
initrd --name initrd \${base}/blob/2222222222222222222222222222222222222222222222222222222222222222 || goto failed
imgfetch --name step \${base}/boot/step?boot=0123456789abcdef&mac=52:54:00:00:00:01&step=boot && imgfree step ||
boot kernel || goto failed
:failed
echo Muster: that failed: \${errno}
imgfetch --name step \${base}/boot/step?boot=0123456789abcdef&mac=52:54:00:00:00:01&step=failed&detail=\${errno:uristring} && imgfree step ||
inc server
goto next
`)
  })

  it('that boots a whole cpio', () => {
    expect(machineScript(given({ form: 'cpio' }), CONTEXT)).toBe(`#!ipxe
# n1 boots compute sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, cpio in RAM
set server:int32 0
set round:int32 0
:next
goto server_\${server}
:server_0
set base http://10.77.0.1:7180
goto try
:server_1
set server:int32 0
inc round
goto pause_\${round}
:pause_1
sleep 2
goto next
:pause_2
sleep 5
goto next
:pause_3
sleep 10
goto next
:pause_4
sleep 20
goto next
:pause_5
sleep 30
goto next
:pause_6
sleep 30
goto next
:pause_7
sleep 30
goto next
:pause_8
sleep 30
goto next
:pause_9
sleep 30
goto next
:pause_10
echo Muster: still no success; asking anew what to boot.
sleep 30
chain --replace --autofree http://10.77.0.1:7180/boot.ipxe ||
set round:int32 0
goto next
:try
imgfree
echo Muster: n1 boots compute sha256:aaaaaaaaaaaa
imgfetch --name step \${base}/boot/step?boot=0123456789abcdef&mac=52:54:00:00:00:01&step=kernel && imgfree step ||
kernel --name kernel \${base}/blob/1111111111111111111111111111111111111111111111111111111111111111 initrd=initrd muster.node=n1 muster.boot=0123456789abcdef muster.mac=52:54:00:00:00:01 muster.servers=http://10.77.0.1:7180 muster.image=sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa systemd.hostname=n1 || goto failed
initrd --name initrd \${base}/blob/4444444444444444444444444444444444444444444444444444444444444444 || goto failed
imgfetch --name step \${base}/boot/step?boot=0123456789abcdef&mac=52:54:00:00:00:01&step=boot && imgfree step ||
boot kernel || goto failed
:failed
echo Muster: that failed: \${errno}
imgfetch --name step \${base}/boot/step?boot=0123456789abcdef&mac=52:54:00:00:00:01&step=failed&detail=\${errno:uristring} && imgfree step ||
inc server
goto next
`)
  })

  it('that boots its own disk', () => {
    expect(machineScript(given({ from: 'disk' }), CONTEXT)).toBe(`#!ipxe
# n1 boots from its own disk
echo Muster: n1 boots from its disk
iseq \${platform} pcbios && sanboot --no-describe --drive 0x80 ||
exit
`)
  })

  it('that waits for a place: the discovery system, and on the console for what', () => {
    const waiting = { [STRANGER]: { node: 'n2', holder: MAC, place: 'sw1 2' } }
    const script = machineScript(decideFor(indexOf({ waiting }), STRANGER), { ...CONTEXT, mac: STRANGER })
    const words = `${STRANGER} waits: it claims sw1 2, the place of n2, but n2 is ${MAC}`
    expect(script).toContain(`# ${words}: it runs the discovery system\n`)
    expect(script).toContain(`${words}: starting the discovery system`)
  })

  it('that nobody knows: the discovery system, with the programs it looks around with', () => {
    const context = { ...CONTEXT, mac: STRANGER, discoveryExtras: '9'.repeat(64) }
    expect(machineScript(decideFor(indexOf(), STRANGER), context)).toBe(`#!ipxe
# 52:54:00:ff:ff:ff is unknown: it runs the discovery system
set server:int32 0
set round:int32 0
:next
goto server_\${server}
:server_0
set base http://10.77.0.1:7180
goto try
:server_1
set server:int32 0
inc round
goto pause_\${round}
:pause_1
sleep 2
goto next
:pause_2
sleep 5
goto next
:pause_3
sleep 10
goto next
:pause_4
sleep 20
goto next
:pause_5
sleep 30
goto next
:pause_6
sleep 30
goto next
:pause_7
sleep 30
goto next
:pause_8
sleep 30
goto next
:pause_9
sleep 30
goto next
:pause_10
echo Muster: still no success; asking anew what to boot.
sleep 30
chain --replace --autofree http://10.77.0.1:7180/boot.ipxe ||
set round:int32 0
goto next
:try
imgfree
echo Muster: nobody knows 52:54:00:ff:ff:ff: starting the discovery system
imgfetch --name step \${base}/boot/step?boot=0123456789abcdef&mac=52:54:00:ff:ff:ff&step=kernel && imgfree step ||
kernel --name kernel \${base}/blob/1111111111111111111111111111111111111111111111111111111111111111 initrd=initrd initrd=initrd1 muster.mode=discover muster.boot=0123456789abcdef muster.mac=52:54:00:ff:ff:ff muster.servers=http://10.77.0.1:7180 console=tty0 console=ttyS0,115200 || goto failed
initrd --name initrd \${base}/blob/2222222222222222222222222222222222222222222222222222222222222222 || goto failed
initrd --name initrd1 \${base}/blob/9999999999999999999999999999999999999999999999999999999999999999 || goto failed
imgfetch --name step \${base}/boot/step?boot=0123456789abcdef&mac=52:54:00:ff:ff:ff&step=boot && imgfree step ||
boot kernel || goto failed
:failed
echo Muster: that failed: \${errno}
imgfetch --name step \${base}/boot/step?boot=0123456789abcdef&mac=52:54:00:ff:ff:ff&step=failed&detail=\${errno:uristring} && imgfree step ||
inc server
goto next
`)
  })

  it('that gets nothing: says why, and asks again', () => {
    expect(machineScript(given({ image: 'login' }), { ...CONTEXT, urls: TWO })).toBe(`#!ipxe
# there is no image login on the server
echo
echo Muster cannot boot this machine: there is no image login on the server.
echo To change that: build it: muster image build login
echo This machine asks again in 30 seconds.
sleep 30
chain --replace --autofree http://10.77.0.1:7180/boot.ipxe || goto again
:again
sleep 30
chain --replace --autofree http://10.77.0.2:7180/boot.ipxe || goto again
`)
  })
})

const told = (decision: Decision, context: Partial<BootContext> = {}): string[] =>
  decision.kind === 'image' ? kernelArguments(decision, { ...CONTEXT, ...context }) : []

describe('what the kernel is told', () => {
  const PLAN = [
    'muster.root=squashfs',
    `muster.sha256=${'3'.repeat(64)}`,
    'muster.size=300000000',
    'muster.overlay=50%',
    'muster.kernel=6.1.0-30-amd64',
  ]
  const WHO = [
    'muster.node=n1',
    'muster.boot=0123456789abcdef',
    `muster.mac=${MAC}`,
    'muster.servers=http://10.77.0.1:7180',
    `muster.image=sha256:${'a'.repeat(64)}`,
  ]

  it.for<[what: string, words: string[], expected: string[]]>([
    ['for a squashfs', told(given()), [...PLAN, ...WHO, 'systemd.hostname=n1']],
    ['for a cpio', told(given({ form: 'cpio' })), [...WHO, 'systemd.hostname=n1']],
    [
      'with an overlay of so many bytes',
      told(given({ overlay: '2000000000' })),
      [...PLAN.with(3, 'muster.overlay=2000000000'), ...WHO, 'systemd.hostname=n1'],
    ],
    ['over a VLAN', told(given({}, { vlan: 12 })), [...PLAN, ...WHO, 'muster.vlan=12', 'systemd.hostname=n1']],
    [
      'where nodes prove who they are',
      told(given(), { enrol: { urls: ['https://10.77.0.1:7181', 'https://10.77.0.2:7181'], ca: 'c'.repeat(64) } }),
      [
        ...PLAN,
        ...WHO.slice(0, 4),
        'muster.enrol=https://10.77.0.1:7181,https://10.77.0.2:7181',
        `muster.ca=${'c'.repeat(64)}`,
        ...WHO.slice(4),
        'systemd.hostname=n1',
      ],
    ],
    [
      'where a shell is allowed',
      told(given(), { shell: true }),
      [...PLAN, ...WHO, 'muster.shell=1', 'systemd.hostname=n1'],
    ],
    [
      'with the arguments of the node last, so that they win',
      told(given({ args: ['quiet', 'systemd.hostname=other'] })),
      [...PLAN, ...WHO, 'systemd.hostname=n1', 'quiet', 'systemd.hostname=other'],
    ],
    [
      'with all servers',
      told(given(), { urls: TWO }),
      [...PLAN, ...WHO.with(3, 'muster.servers=http://10.77.0.1:7180,http://10.77.0.2:7180'), 'systemd.hostname=n1'],
    ],
  ])('%s', ([, words, expected]) => {
    expect(words).toEqual(expected)
  })
})

/** The line that fetches the kernel. */
const kernelLine = (args: string[]): string =>
  machineScript(given({ args }), CONTEXT)
    .split('\n')
    .filter(line => line.startsWith('kernel '))
    .join('\n')

describe('words of the site in a script', () => {
  it.for([
    ['a=${netX/mac}', 'a=?netX/mac}'],
    ['a || b', 'a ? b'],
    ['a && b', 'a ? b'],
    ['a||b', 'a?b'],
    ['a ; b', 'a ? b'],
    [';', '?'],
    ['a;b', 'a;b'],
    ['#b', '?b'],
    ['a #b', 'a ?b'],
    ['a#b', 'a#b'],
    ['a\nb', 'a?b'],
    ['größe', 'gr??e'],
    ['dyndbg="file foo.c +p"', 'dyndbg="file foo.c +p"'],
  ])('%j are %j: nothing iPXE would take as its own', ([word = '', written]) => {
    expect(kernelLine([word])).toContain(` systemd.hostname=n1 ${written} || goto failed`)
  })

  it('never leave their line nor its end', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'binary', minLength: 1, maxLength: 40 }), { maxLength: 5 }), args => {
        const line = kernelLine(args)
        expect(line).toMatch(/^kernel --name kernel \$\{base\}\/blob\/1{64} [\x20-\x7e]* \|\| goto failed$/)
        const words = line.split(' ').slice(3, -3)
        expect(words.filter(word => /^#|^;$|\|\||&&|\$\{/.test(word.replace('${base}', '')))).toEqual([])
      }),
    )
  })

  it('in a message are as harmless', () => {
    const decision: Decision = { kind: 'refuse', problem: 'a\nboot ${x} || reboot', hint: '# ; b', because: [] }
    expect(machineScript(decision, CONTEXT).split('\n').slice(1, 5)).toEqual([
      '# a?boot ?x} ? reboot',
      'echo',
      'echo Muster cannot boot this machine: a?boot ?x} ? reboot.',
      'echo To change that: ? ? b',
    ])
  })
})

describe('every script', () => {
  const scripts: [string, string][] = [
    ['first', firstScript({ urls: TWO }, 12)],
    ['squashfs', machineScript(given(), { ...CONTEXT, urls: TWO })],
    ['cpio', machineScript(given({ form: 'cpio' }), { ...CONTEXT, urls: TWO })],
    ['disk', machineScript(given({ from: 'disk' }), CONTEXT)],
    ['discovery', machineScript(decideFor(indexOf(), STRANGER), { ...CONTEXT, urls: TWO })],
    ['refusal', machineScript(given({ image: 'login' }), { ...CONTEXT, urls: TWO })],
  ]

  it.for(scripts)('%s jumps only to labels it has, each of them once', ([, script]) => {
    const labels = [...script.matchAll(/^:(\S+)$/gm)].map(([, label]) => label ?? '')
    expect(new Set(labels).size).toBe(labels.length)
    const jumps = [...script.matchAll(/goto (\S+)/g)].map(([, label]) => label ?? '')
    const counted = jumps.flatMap(label =>
      label.endsWith('_${server}')
        ? ['server_0', 'server_1', 'server_2']
        : label.endsWith('_${round}')
          ? Array.from({ length: 10 }, (_, index) => `pause_${index + 1}`)
          : [label],
    )
    expect(counted.filter(label => !labels.includes(label))).toEqual([])
  })

  it.for(scripts)('%s has no line that iPXE could not hold', ([, script]) => {
    expect(script.startsWith('#!ipxe\n')).toBe(true)
    expect(script.endsWith('\n')).toBe(true)
    expect(Math.max(...script.split('\n').map(line => line.length))).toBeLessThan(4096)
  })

  it.for(scripts.filter(([name]) => name !== 'disk'))('%s never ends: its last line goes on', ([, script]) => {
    expect(script.trimEnd().split('\n').at(-1)).toMatch(/^goto next$|\|\| goto again$/)
  })
})
