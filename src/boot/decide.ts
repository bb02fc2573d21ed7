import type { KnownMachine, ViewIndex } from './index-view.ts'
import type { BootImage, BootNode } from './view.ts'

/** What a machine that asks is given, and why: what `muster boot explain` shows. */
export type Decision = {
  /** One sentence each, in the order they were found. */
  readonly because: readonly string[]
} & (
  | {
      readonly kind: 'image'
      readonly node: BootNode
      readonly image: BootImage
      readonly form: 'squashfs' | 'cpio'
      readonly machine: KnownMachine | undefined
    }
  | { readonly kind: 'disk'; readonly node: BootNode }
  /** `waits` says for what, where it would be a node but for another machine. */
  | { readonly kind: 'discover'; readonly image: BootImage; readonly waits?: string | undefined }
  /** It gets nothing to boot, and a message that says so. */
  | { readonly kind: 'refuse'; readonly node?: BootNode; readonly problem: string; readonly hint: string }
)

/** Of a machine that asks by its MAC. */
export function decideFor(index: ViewIndex, mac: string): Decision {
  const machine = index.machine(mac)
  return machine === undefined ? decideStranger(index, mac) : decideNode(index, machine.node, machine)
}

/** Of a node, whichever machine it may be. */
export function decideNode(index: ViewIndex, node: BootNode, machine?: KnownMachine): Decision {
  const because = machine === undefined ? [`${node.name} is a node of the site`] : [machine.because]
  if (node.from === 'disk') return { kind: 'disk', node, because: [...because, 'boot.from is disk'] }
  const refuse = (problem: string, hint: string): Decision => ({ kind: 'refuse', node, problem, hint, because })
  if (node.image === undefined)
    return refuse(`${node.name} has no image to boot`, `give it one: muster node set ${node.name} boot.image=NAME`)
  if (node.root !== 'ram')
    return refuse(
      `${node.name} wants a root of the kind ${node.root}, which this version cannot serve yet`,
      `muster node set ${node.name} boot.root=ram`,
    )
  const image = index.image(node.image)
  const [name = '', channel] = node.image.split('@')
  if (image === undefined)
    return refuse(
      `there is no image ${node.image} on the server`,
      channel?.startsWith('sha256:') === true
        ? `bring it: muster image pull ${node.image}`
        : `build it: muster image build ${name}`,
    )
  because.push(whichImage(node.image, channel, image))
  const unproven = whyUnproven(image)
  if (unproven !== undefined) return refuse(...unproven)
  const { form } = node
  const lacking = missingFor(image, form)
  if (lacking !== undefined)
    return refuse(
      `image ${image.name} has no ${lacking}`,
      `build it again with that among its outputs: muster image build ${image.name}`,
    )
  because.push(
    form === 'squashfs'
      ? `boot.form is squashfs: our initramfs fetches it and mounts it below an overlay of ${overlayWords(node.overlay)}`
      : 'boot.form is cpio: the whole image is the initramfs, there is no second stage',
  )
  return { kind: 'image', node, image, form, machine, because }
}

const overlayWords = (overlay: string): string => (overlay.endsWith('%') ? `${overlay} of memory` : `${overlay} bytes`)

function whichImage(reference: string, channel: string | undefined, image: BootImage): string {
  if (channel?.startsWith('sha256:') === true) return `boot.image is pinned to ${image.digest}`
  if (channel === undefined) return `boot.image is ${reference}: the newest is ${image.digest}`
  if (image.promoted === undefined)
    return `boot.image is ${reference}; nothing was promoted to that channel yet, so it is the newest: ${image.digest}`
  const { at, by } = image.promoted
  return `boot.image is ${reference}: ${image.digest}, promoted by ${by} at ${at}`
}

/** An image runs nowhere before it has shown what it must; the problem, and what helps. */
function whyUnproven({ name, untrusted, untested }: BootImage): [problem: string, hint: string] | undefined {
  if (untrusted !== undefined)
    return [
      `image ${name} is not to be trusted: ${untrusted}`,
      `sign it with a key of trust.keys: muster image sign ${name}`,
    ]
  if (untested === undefined) return undefined
  return [`image ${name} has not passed its tests in ${untested.join(', ')}`, `muster image test ${name}`]
}

function missingFor(image: BootImage, form: 'squashfs' | 'cpio'): string | undefined {
  if (image.kernel === undefined) return 'kernel'
  if (form === 'cpio') return image.cpio === undefined ? 'cpio' : undefined
  if (image.squashfs === undefined) return 'squashfs'
  return image.initrd === undefined ? 'initramfs' : undefined
}

function whyStranger(index: ViewIndex, mac: string): string {
  const waiting = index.waiting(mac)
  if (waiting === undefined) return `no node has ${mac}, and it was not seen at the place of one`
  const { node, holder, place } = waiting
  return `${mac} waits: ${place === undefined ? '' : `it claims ${place}, the place of ${node}, but `}${node} is ${holder}`
}

function decideStranger(index: ViewIndex, mac: string): Decision {
  const { settings } = index.view
  const because = [whyStranger(index, mac)]
  const refuse = (problem: string, hint: string): Decision => ({ kind: 'refuse', problem, hint, because })
  if (settings.provision.unknown === 'ignore')
    return refuse(
      `${mac} is no node of site ${settings.site}`,
      `make it one: muster node set NODE interfaces.NETWORK.mac=${mac}`,
    )
  const image = settings.discovery === null ? undefined : index.image(settings.discovery)
  if (image?.kernel === undefined || image.initrd === undefined)
    return refuse(
      `${mac} is no node of site ${settings.site}, and there is no discovery system: image ${settings.discovery ?? 'of defaults'} with a kernel is missing`,
      settings.discovery === null
        ? 'name one in site.yaml: provision.discovery'
        : `build it: muster image build ${settings.discovery}`,
    )
  const unproven = whyUnproven(image)
  if (unproven !== undefined) return refuse(...unproven)
  return {
    kind: 'discover',
    image,
    ...(index.waiting(mac) !== undefined && { waits: because[0] }),
    because: [...because, `provision.unknown is discover: it runs the kernel of ${image.name} and says what it is`],
  }
}
