import { type KeyObject, createHash, createHmac, createSecretKey, timingSafeEqual } from 'node:crypto'
import { MusterError } from '../lib/errors.ts'
import { canonicalAddress, contains, parseNetwork } from '../lib/ip.ts'
import type { Heartbeat, Sighting } from '../nodes/reports.ts'
import { bootIdTime, emptyBootId, makeBootId } from './boot-ids.ts'
import { type Credential, readCredential, signCredential } from './credentials.ts'
import { EnrolmentBook } from './enrolment-book.ts'
import type { KnownMachine, ViewIndex } from './index-view.ts'

export interface EnrolmentOptions {
  /** With which all that nodes are given is signed. */
  readonly key: Buffer
  /** Where it is written down who was let in. */
  readonly file: string
  readonly index: () => ViewIndex | undefined
  readonly tell: (sighting: Sighting) => void
  readonly now?: () => Date
  /** Seconds that only ever grow, whatever becomes of the clock. */
  readonly elapsed?: () => number
}

/** Who asks, as far as the connection shows. */
export interface Asker {
  /** Its address. */
  readonly from: string
  /** Its port is one that users cannot have. */
  readonly isRoot: boolean
  /** Ours. */
  readonly server: string
}
export interface Claim extends Asker {
  readonly mac: string
  readonly boot: string
  /** SHA-256 of a secret that the node made. */
  readonly claim: string
}
export interface Proof extends Asker {
  readonly mac: string
  readonly boot: string
  readonly token: string
  readonly secret: string
}

/** Seconds. From the script to the claim; also from the claim to the first credential. */
const WINDOW = 20 * 60
const LIFETIME = 3600
/** Between the clocks of two servers. */
const GRACE = 60
/** Two heartbeats and a little: who was heard so lately is up. */
const UP = 25
/** Silent for so long it is not up, whether or not its firmware was seen to start: who takes its place on the wire has to keep it silent. */
const LOST = 60
/** Within one heartbeat of our start all nodes that run have been heard; of those never let in none can be. */
const UNSURE = 15
const NOT_ROOT = 'it was not root who asked: the port of a claim is below 1024'
/** Between two events of one node that it was refused. */
const QUIET = 60
/** Credentials whose signature was found right: more than there are nodes. */
const MOST_CHECKED = 65_536

/** The boot that was let in and proved that it runs, and when it last did. */
interface Heard {
  readonly boot: string
  readonly at: number
  /** Its firmware was seen to start since. */
  readonly hasStarted: boolean
}

/**
 * Lets nodes in. A node that boots is given an id with its script; with that it may claim to be that node, once, soon, from
 * its own address, and only while no such node is up. Whoever made the claim gets credentials, for as long as that boot
 * lasts. What this proves, and what it cannot, is told in docs/how-to/trust-nodes.md.
 */
export class Enrolment implements AsyncDisposable {
  readonly #options: EnrolmentOptions
  readonly #key: KeyObject
  readonly #book: EnrolmentBook
  readonly #began: number
  /** The last boot id that each node was given. */
  readonly #given = new Map<string, string>()
  readonly #heard = new Map<string, Heard>()
  /** The last boot of each node that said it is ready. */
  readonly #ready = new Map<string, string>()
  /** When it was last told that a node was refused. */
  readonly #refused = new Map<string, number>()
  readonly #checked = new Map<string, Credential>()
  readonly #proved = new WeakSet<Heartbeat>()

  private constructor(options: EnrolmentOptions, book: EnrolmentBook) {
    this.#options = options
    this.#key = createSecretKey(options.key)
    this.#book = book
    this.#began = this.#elapsed()
  }

  static async open(options: EnrolmentOptions): Promise<Enrolment> {
    return new Enrolment(options, await EnrolmentBook.open(options.file))
  }

  #now(): number {
    return Math.floor((this.#options.now?.() ?? new Date()).getTime() / 1000)
  }

  #elapsed(): number {
    return this.#options.elapsed?.() ?? performance.now() / 1000
  }

  /** For the script of a machine. Asked from elsewhere than a node asks from, it is one that opens nothing. */
  newBoot(machine: KnownMachine, mac: string, from: string): string {
    if (!isItsAddress(machine, from) && !this.#isStrangers(machine, from)) return emptyBootId()
    const { name } = machine.node
    const boot = makeBootId(this.#key, name, mac, this.#now())
    this.#given.set(name, boot)
    return boot
  }

  /** Whether it is an id that we gave to this machine as this node. */
  isOurs(machine: KnownMachine, mac: string, boot: string): boolean {
    return bootIdTime(this.#key, boot, machine.node.name, mac) !== undefined
  }

  /** Whether what is said of a boot may count as said of this node. While it is up, only what is said of boots that we gave to it does. */
  isHeeded(machine: KnownMachine, mac: string, boot: string): boolean {
    return !this.#isUp(machine.node.name) || this.isOurs(machine, mac, boot)
  }

  /** A machine that nobody knew when it asked for an address is asking still from the one it got then. */
  #isStrangers(machine: KnownMachine, from: string): boolean {
    const networks = this.#options.index()?.view.settings.networks ?? {}
    const range = parseNetwork(networks[machine.interface?.network ?? '']?.unknown ?? '')
    return range !== undefined && contains(range, from)
  }

  /**
   * A heartbeat. One of a boot that was let in proves it, and then nobody else is that node for a while; whether it counts at all.
   * Others count as long as no such boot is heard: of images that cannot prove anything, or of a server that forgot.
   */
  hear(node: string, said: Heartbeat): boolean {
    const granted = this.#book.get(node)?.granted?.boot
    if (said.boot !== granted) return !this.#isUp(node)
    if (!this.#isProved(node, said)) return false
    this.#heard.set(node, { boot: said.boot, at: this.#elapsed(), hasStarted: false })
    return true
  }

  /** What comes every ten seconds as the same object was looked at before. */
  #isProved(node: string, said: Heartbeat): boolean {
    if (this.#proved.has(said)) return true
    if (said.beat === undefined || !isSame(said.beat, this.#beat(node, said.mac, said.boot))) return false
    this.#proved.add(said)
    return true
  }

  #isUp(node: string, within = UP): boolean {
    return this.#elapsed() - (this.#heard.get(node)?.at ?? -Infinity) < within
  }

  /** Firmware of its machine asks for an address: what ran before runs no more. It may be made up, so it counts only for a node that is silent, too. */
  starts(node: string): void {
    const heard = this.#heard.get(node)
    if (heard !== undefined) this.#heard.set(node, { ...heard, hasStarted: true })
  }

  ready(node: string, mac: string, boot: string): void {
    if (bootIdTime(this.#key, boot, node, mac) !== undefined) this.#ready.set(node, boot)
  }

  /** A token, to be shown with the secret. Resolves once the claim is kept for good. */
  async claim(said: Claim): Promise<string> {
    const machine = this.#machine(said.mac)
    const node = machine.node.name
    const problem = this.#whyNot(machine, said)
    if (problem !== undefined) this.#refuse(node, said, problem)
    const { boot, claim } = said
    const granted = this.#book.get(node)?.granted
    if (granted !== undefined && granted.boot !== boot && this.#elapsed() - this.#began < UNSURE)
      throw new MusterError('ENROL_EARLY', 'this server has just started and does not know yet which nodes are up')
    if (granted?.boot !== boot) {
      await this.#book.put(node, { granted: { boot, claim, at: this.#now() } })
      this.#tell({ kind: 'enrolled', node, ...this.#seen(said) })
    } else await this.#book.settled()
    return this.#token(node, said.mac, boot, claim)
  }

  #whyNot(machine: KnownMachine, { mac, boot, claim, from, isRoot }: Claim): string | undefined {
    const node = machine.node.name
    const entry = this.#book.get(node)
    const now = this.#now()
    const time = bootIdTime(this.#key, boot, node, mac)
    if (time === undefined) return 'this boot id was not given to it'
    if (now - time >= WINDOW) return `its boot began more than ${WINDOW / 60} minutes ago`
    if (time - now > GRACE) return 'its boot begins in the future: the clock of the server was set back'
    if (time <= (entry?.revoked ?? 0)) return 'it was revoked and has not booted since'
    if (!isItsAddress(machine, from)) return `${from} is not its address`
    if (!isRoot) return NOT_ROOT
    if ((this.#given.get(node) ?? boot) !== boot) return 'it has begun another boot since'
    const heard = this.#heard.get(node)?.boot
    if ([this.#ready.get(node), heard].includes(boot)) return 'this boot is over: it is ready'
    if (this.#isUp(node, this.#heard.get(node)?.hasStarted === true ? UP : LOST))
      return 'it is up: a heartbeat of another boot was heard just now'
    if (entry?.granted?.boot === boot && !isSame(entry.granted.claim, claim))
      return 'somebody else has claimed this boot'
    return undefined
  }

  /** To whoever made the claim. */
  async credential(said: Proof): Promise<Issued> {
    const machine = this.#machine(said.mac)
    const node = machine.node.name
    const { mac, boot, token, secret, from, isRoot } = said
    const claim = createHash('sha256').update(secret).digest('hex')
    await this.#book.settled()
    const { granted } = this.#book.get(node) ?? {}
    if (!isSame(token, this.#token(node, mac, boot, claim)))
      this.#refuse(node, said, 'this token was not given for this secret')
    if (granted?.boot !== boot || !isSame(granted.claim, claim))
      this.#refuse(node, said, 'its claim is not the one that was granted last')
    if (this.#now() - granted.at >= WINDOW)
      this.#refuse(node, said, `it was claimed more than ${WINDOW / 60} minutes ago`)
    if (!isItsAddress(machine, from)) this.#refuse(node, said, `${from} is not its address`)
    if (!isRoot) this.#refuse(node, said, NOT_ROOT)
    if (this.#isRevoked(node, boot)) this.#refuse(node, said, 'it was revoked and has not booted since')
    return this.#issue({ node, mac, boot })
  }

  /**
   * For root of that node alone. Servers may have been away for days: then what it has ran out long ago, and the boot it was given
   * to goes on.
   */
  renew(credential: string, { from, isRoot }: Asker): Issued | undefined {
    const held = this.#ofThisBoot(credential)
    const machine = held && this.#options.index()?.machine(held.mac)
    return machine !== undefined && isRoot && isItsAddress(machine, from) ? this.#issue(held as Credential) : undefined
  }

  /** Whose it is; undefined where it is worth nothing, or nothing any more. */
  check(credential: string): Credential | undefined {
    const held = this.#ofThisBoot(credential)
    return held !== undefined && this.#now() < held.expires + GRACE ? held : undefined
  }

  #ofThisBoot(credential: string): Credential | undefined {
    const held = this.#signed(credential)
    if (held === undefined) return undefined
    const { node, mac, boot } = held
    if (this.#options.index()?.machine(mac)?.node.name !== node) return undefined
    return this.#book.get(node)?.granted?.boot === boot && !this.#isRevoked(node, boot) ? held : undefined
  }

  /**
   * By what was checked before, which is quicker by far. Looking a text up tells nobody how much of it is right: what is
   * compared are seeded hashes.
   */
  #signed(credential: string): Credential | undefined {
    const known = this.#checked.get(credential)
    if (known !== undefined) return known
    const held = readCredential(this.#key, credential)
    if (held === undefined) return undefined
    if (this.#checked.size >= MOST_CHECKED) this.#checked.clear()
    this.#checked.set(credential, held)
    return held
  }

  /** Until its next boot it gets nothing. Resolves once that is so for good. */
  revoke(node: string): Promise<void> {
    return this.#book.put(node, { revoked: this.#now() })
  }

  #isRevoked(node: string, boot: string): boolean {
    return Number.parseInt(boot.slice(0, 8), 16) <= (this.#book.get(node)?.revoked ?? 0)
  }

  #issue({ node, mac, boot }: Omit<Credential, 'expires'>): Issued {
    const expires = this.#now() + LIFETIME
    const credential = signCredential(this.#key, { node, mac, boot, expires })
    return { credential, seconds: LIFETIME, beat: this.#beat(node, mac, boot) }
  }

  #machine(mac: string): KnownMachine {
    const machine = this.#options.index()?.machine(mac)
    // Not an event: whoever is on the network can make machines up.
    if (machine === undefined) throw new MusterError('ENROL_REFUSED', 'this machine is no node of the site')
    return machine
  }

  #beat(node: string, mac: string, boot: string): string {
    return createHmac('sha256', this.#key).update(`beat|${node}|${mac}|${boot}`).digest('hex')
  }

  #token(node: string, mac: string, boot: string, claim: string): string {
    return createHmac('sha256', this.#key).update(`token|${node}|${mac}|${boot}|${claim}`).digest('hex')
  }

  #refuse(node: string, said: Claim | Proof, reason: string): never {
    const now = this.#elapsed()
    if (now - (this.#refused.get(node) ?? -Infinity) >= QUIET) {
      this.#refused.set(node, now)
      this.#tell({ kind: 'enrol-refused', node, ...this.#seen(said), reason })
    }
    throw new MusterError('ENROL_REFUSED', reason)
  }

  #seen({ mac, boot, from, server }: Claim | Proof): Omit<Extract<Sighting, { kind: 'enrolled' }>, 'kind' | 'node'> {
    return { at: (this.#options.now?.() ?? new Date()).toISOString(), server, mac, boot, address: from }
  }

  #tell(sighting: Sighting): void {
    this.#options.tell(sighting)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#book[Symbol.asyncDispose]()
  }
}

export interface Issued {
  readonly credential: string
  /** From now on. */
  readonly seconds: number
  /** With which its heartbeats are known as its own; good for nothing else. */
  readonly beat: string
}

/** Where the site gives it none, any is as good as another. */
function isItsAddress({ interface: one }: KnownMachine, from: string): boolean {
  return one?.address === undefined || canonicalAddress(one.address) === from
}

const isSame = (one: string, other: string): boolean =>
  one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other))
