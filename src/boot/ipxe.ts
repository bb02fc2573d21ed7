import type { Decision } from './decide.ts'

/** What every script is written with: who may be asked, first first. */
export interface Servers {
  /** http://10.77.0.1:7180, in the order they are to be asked. */
  readonly urls: readonly [string, ...string[]]
}

/** How a node proves who it is and gets its files. Nothing of it is secret. */
export interface EnrolPlan {
  /** https://10.77.0.1:7181, in the order they are to be asked. */
  readonly urls: readonly string[]
  /** SHA-256 of the certificate they are known by, which is at /ca.pem of every boot server. */
  readonly ca: string
}

/** What tells one boot of one machine from all others. */
export interface BootContext extends Servers {
  readonly boot: string
  readonly mac: string
  readonly shell: boolean
  /** Where somebody lets nodes in. */
  readonly enrol?: EnrolPlan | undefined
  /** The extra initramfs of the discovery system, where there is one. */
  readonly discoveryExtras?: string
}

/** Seconds between rounds over all servers; the last one for all further ones. */
const PAUSES = [2, 5, 10, 20, 30]
/** After so many rounds things may have changed: it asks anew what it should boot. */
const ROUNDS = 10

/**
 * The script every loader starts with, the same for all machines: served as /boot.ipxe and as autoexec.ipxe. It gets an
 * address where the firmware left none, and asks each server in turn for the machine's own script.
 */
export function firstScript({ urls }: Servers, vlan?: number): string {
  const question =
    '/boot/script?mac=${netX/mac:hexhyp}&uuid=${uuid}&platform=${platform}&arch=${buildarch}&serial=${serial:uristring}&product=${product:uristring}'
  return script([
    '# Every machine starts here; which script is its own, the boot server says.',
    ...(vlan === undefined ? [] : [`vcreate --tag ${vlan} net0 || echo Muster: VLAN ${vlan} was there already`]),
    ':address',
    'isset ${netX/ip} && goto ask ||',
    vlan === undefined
      ? 'ifconf --configurator dhcp && goto ask ||'
      : `ifconf --configurator dhcp net0-${vlan} && goto ask ||`,
    'echo Muster: no answer to DHCP on any interface: is the cable in, and the port in the right VLAN? Trying again.',
    'sleep 5',
    'goto address',
    ':ask',
    ...rounds(
      urls,
      [
        'echo Muster: asking ${base} what ${netX/mac} should boot',
        `chain --replace --autofree \${base}${question} || goto failed`,
      ],
      'echo Muster: ${base} did not answer: ${errno}',
    ),
  ])
}

/** The script of one machine. */
export function machineScript(decision: Decision, context: BootContext): string {
  switch (decision.kind) {
    case 'image':
      return imageScript(decision, context)
    case 'disk':
      return diskScript(decision.node.name)
    case 'discover':
      return discoveryScript(decision, context)
    case 'refuse':
      break
  }
  return refusal(decision, context)
}

function imageScript(decision: Extract<Decision, { kind: 'image' }>, context: BootContext): string {
  const { node, image, form } = decision
  const root = form === 'squashfs' ? image.initrd : image.cpio
  return script([
    `# ${node.name} boots ${image.name} ${image.digest}, ${form} in RAM`,
    ...rounds(
      context.urls,
      load({
        what: `${node.name} boots ${image.name} ${image.digest.slice(0, 19)}`,
        kernel: image.kernel?.sha256 ?? '',
        initrds: [root?.sha256 ?? ''],
        args: kernelArguments(decision, context),
        context,
      }),
      failed(context),
    ),
  ])
}

function discoveryScript(decision: Extract<Decision, { kind: 'discover' }>, context: BootContext): string {
  const { image } = decision
  const args = [
    'muster.mode=discover',
    `muster.boot=${context.boot}`,
    `muster.mac=${context.mac}`,
    `muster.servers=${context.urls.join(',')}`,
    ...(context.shell ? ['muster.shell=1'] : []),
    // The last one is where people type: a rack has serial lines.
    'console=tty0',
    'console=ttyS0,115200',
  ]
  return script([
    decision.waits === undefined
      ? `# ${context.mac} is unknown: it runs the discovery system`
      : `# ${plain(decision.waits)}: it runs the discovery system`,
    ...rounds(
      context.urls,
      load({
        what: `${decision.waits ?? `nobody knows ${context.mac}`}: starting the discovery system`,
        kernel: image.kernel?.sha256 ?? '',
        initrds: [
          image.initrd?.sha256 ?? '',
          ...(context.discoveryExtras === undefined ? [] : [context.discoveryExtras]),
        ],
        args,
        context,
      }),
      failed(context),
    ),
  ])
}

function diskScript(node: string): string {
  return script([
    `# ${node} boots from its own disk`,
    `echo Muster: ${node} boots from its disk`,
    // BIOS can be told; UEFI goes on to the next entry of its boot order.
    'iseq ${platform} pcbios && sanboot --no-describe --drive 0x80 ||',
    'exit',
  ])
}

/** Nothing to boot: said where somebody stands before the machine, and asked again, because it may change. */
function refusal(decision: Extract<Decision, { kind: 'refuse' }>, { urls }: BootContext): string {
  return script([
    `# ${plain(decision.problem)}`,
    'echo',
    `echo Muster cannot boot this machine: ${plain(decision.problem)}.`,
    `echo To change that: ${plain(decision.hint)}`,
    'echo This machine asks again in 30 seconds.',
    'sleep 30',
    `chain --replace --autofree ${urls[0]}/boot.ipxe || goto again`,
    ':again',
    'sleep 30',
    `chain --replace --autofree ${urls.at(-1) ?? urls[0]}/boot.ipxe || goto again`,
  ])
}

/** What the kernel is told; initramfs and agent read it from /proc/cmdline. */
export function kernelArguments(decision: Extract<Decision, { kind: 'image' }>, context: BootContext): string[] {
  const { node, image, form, machine } = decision
  const vlan = machine?.interface?.vlan
  const { enrol } = context
  return [
    ...(form === 'cpio' ? [] : planOf(decision)),
    `muster.node=${node.name}`,
    `muster.boot=${context.boot}`,
    `muster.mac=${context.mac}`,
    `muster.servers=${context.urls.join(',')}`,
    ...(enrol === undefined ? [] : [`muster.enrol=${enrol.urls.join(',')}`, `muster.ca=${enrol.ca}`]),
    `muster.image=${image.digest}`,
    ...(vlan === undefined ? [] : [`muster.vlan=${vlan}`]),
    ...(context.shell ? ['muster.shell=1'] : []),
    `systemd.hostname=${node.name}`,
    ...node.args,
  ]
}

const planOf = ({ node, image }: Extract<Decision, { kind: 'image' }>): string[] => [
  'muster.root=squashfs',
  `muster.sha256=${image.squashfs?.sha256 ?? ''}`,
  `muster.size=${image.squashfs?.size ?? 0}`,
  `muster.overlay=${node.overlay}`,
  `muster.kernel=${image.kernelVersion ?? ''}`,
  ...(image.signature === undefined || image.manifest === undefined
    ? []
    : [`muster.manifest=${image.manifest.size}`, `muster.signature=${image.signature}`]),
]

interface Load {
  readonly what: string
  readonly kernel: string
  readonly initrds: readonly string[]
  readonly args: readonly string[]
  readonly context: BootContext
}

function load({ what, kernel, initrds, args, context }: Load): string[] {
  const named = initrds.map((sha256, index) => ({ sha256, name: index === 0 ? 'initrd' : `initrd${index}` }))
  // UEFI hands the initramfs over by name.
  const words = [...named.map(({ name }) => `initrd=${name}`), ...args].map(plain).join(' ')
  return [
    'imgfree',
    `echo Muster: ${plain(what)}`,
    step(context, 'kernel'),
    `kernel --name kernel \${base}/blob/${kernel} ${words} || goto failed`,
    ...named.map(({ sha256, name }) => `initrd --name ${name} \${base}/blob/${sha256} || goto failed`),
    step(context, 'boot'),
    'boot kernel || goto failed',
  ]
}

const failed = (context: BootContext): string =>
  `echo Muster: that failed: \${errno}\n${step(context, 'failed', '&detail=${errno:uristring}')}`

/** Tells the server; nothing depends on it. What it fetched must go: loaded images become part of the initramfs. */
const step = ({ boot, mac }: BootContext, name: string, more = ''): string =>
  `imgfetch --name step \${base}/boot/step?boot=${boot}&mac=${mac}&step=${name}${more} && imgfree step ||`

/** Does something with each server in turn, pausing longer after each round, for ever. */
function rounds(urls: readonly string[], body: readonly string[], onFailure: string): string[] {
  return [
    'set server:int32 0',
    'set round:int32 0',
    ':next',
    'goto server_${server}',
    ...urls.flatMap((url, index) => [`:server_${index}`, `set base ${url}`, 'goto try']),
    `:server_${urls.length}`,
    'set server:int32 0',
    'inc round',
    'goto pause_${round}',
    ...Array.from({ length: ROUNDS - 1 }, (_, index) => [
      `:pause_${index + 1}`,
      `sleep ${PAUSES[index] ?? PAUSES.at(-1)}`,
      'goto next',
    ]).flat(),
    `:pause_${ROUNDS}`,
    'echo Muster: still no success; asking anew what to boot.',
    'sleep 30',
    ...urls.map(url => `chain --replace --autofree ${url}/boot.ipxe ||`),
    'set round:int32 0',
    'goto next',
    ':try',
    ...body,
    ':failed',
    ...onFailure.split('\n'),
    'inc server',
    'goto next',
  ]
}

const script = (lines: readonly string[]): string => `#!ipxe\n${lines.join('\n')}\n`

/**
 * Words of ours in a script: nothing that iPXE would take as a command, a setting or a new line. A word that begins with #
 * is a comment up to the end of the line, and ; alone ends a command.
 */
const plain = (text: string): string => {
  // Hardly ever, and this is said a dozen times in every script.
  if (!UNUSUAL.test(text)) return text
  return text
    .replaceAll(/[^\x20-\x7e]/g, '?')
    .replaceAll(/\$\{|\|\||&&/g, '?')
    .replaceAll(/(?<=^| )(?:#|;(?= |$))/g, '?')
}
const UNUSUAL = /[^\x20-\x7e]|[$|&#;]/
