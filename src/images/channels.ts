import { durationWords, parseDuration } from '../lib/duration.ts'
import { MusterError } from '../lib/errors.ts'
import { humanSize, parseSize } from '../lib/size.ts'
import { didYouMean } from '../lib/suggest.ts'
import { SETTINGS, SiteSettings } from '../site/settings.ts'
import { allObserved } from '../state/observed.ts'
import type { NewEvent, Store } from '../state/store.ts'
import type { Digest, Manifest } from './manifest.ts'
import { CHANNEL, type ChannelHistory, type Move, channelsIn, movesOf, stackOf, timeIn } from './moves.ts'
import { rootsOf } from './roots.ts'
import type { About } from './store/about.ts'
import { type ImageName, shortName } from './store/reference.ts'
import type { ImageStore } from './store/store.ts'
import { placesToPass, readReport } from './tests/kept.ts'
import { judgeSignatures } from './trust/signatures.ts'

/** Of these many moves it is known who made them and why. */
const KEPT = 500

type Rules = Pick<SiteSettings, 'trust' | 'channels'>

export interface Mover {
  readonly name: string
  readonly from: string
}

export interface Promotion {
  /** NAME, NAME@sha256:…, or NAME@CHANNEL for what that points to. */
  readonly image: string
  readonly channel: string
  readonly reason: string
}

export interface Moved extends ImageName {
  readonly channel: string
  readonly before: Digest | null
  readonly isUnchanged: boolean
}

/**
 * Channels: pointers such as compute@stable, moved atomically and only to images that have shown what the site asks for.
 * Moving one reboots nobody: nodes that follow it get the image with their next boot.
 */
export class Channels {
  readonly #store: Store
  readonly #images: ImageStore
  readonly #now: () => Date

  constructor(store: Store, images: ImageStore, now: () => Date = () => new Date()) {
    this.#store = store
    this.#images = images
    this.#now = now
  }

  async list(): Promise<ChannelHistory[]> {
    return channelsIn(await this.#store.list(CHANNEL))
  }

  async find(name: string, channel: string): Promise<ChannelHistory | undefined> {
    const entry = await this.#store.get(keyOf(name, channel))
    return entry && { name, channel, moves: movesOf(entry.value) }
  }

  async promote(who: Mover, { image: reference, channel, reason }: Promotion): Promise<Moved> {
    const source = await this.#channelIn(reference)
    const { name, digest, manifest } = await this.#images.resolve(source?.reference ?? reference)
    const lacking = await this.#lacking({ name, digest }, manifest, channel)
    if (lacking.length > 0)
      throw new MusterError('CHANNEL_REFUSED', `${shortName({ name, digest })} may not become ${name}@${channel}`, {
        details: lacking,
      })
    const move = { digest, at: this.#now().toISOString(), by: who.name, reason, back: false }
    return this.#move(who, name, channel, source === undefined ? move : { ...move, from: source.channel })
  }

  /** Takes the last move back that was not taken back yet. */
  async rollback(who: Mover, name: string, channel: string, reason: string): Promise<Moved> {
    const history = await this.#known(name, channel)
    const before = stackOf(history.moves).at(-2)
    if (before === undefined)
      throw new MusterError('CHANNEL_REFUSED', `${name}@${channel} has pointed to nothing before`, { hint: '' })
    const { manifest } = await this.#images.resolve(`${name}@${before.digest}`)
    const rules = await this.#rules()
    const untrusted = unsigned(manifest, await this.#images.about(before.digest as Digest), rules, channel)
    if (untrusted !== undefined)
      throw new MusterError(
        'CHANNEL_REFUSED',
        `${shortName({ name, digest: before.digest as Digest })} may not become ${name}@${channel} again`,
        { details: [untrusted] },
      )
    const move = { digest: before.digest, at: this.#now().toISOString(), by: who.name, reason, back: true }
    return this.#move(who, name, channel, move)
  }

  /** Whether what somebody says of an image can be believed: signatures of keys the site knows, a report about it. */
  async accept(image: ImageName, manifest: Manifest, about: About): Promise<void> {
    const { trust } = await this.#rules()
    const bad = judgeSignatures(manifest, about.signatures, trust).flatMap(one => (one.isGood ? [] : [one.why]))
    if (bad.length > 0)
      throw new MusterError('IMAGE_UNTRUSTED', `signatures of ${shortName(image)} are not accepted: ${bad[0]}`, {
        details: bad,
      })
    const { report } = about
    if (report !== undefined && (await readReport(this.#images, image.digest, report)) === undefined)
      throw new MusterError('REQUEST_INVALID', `${report.sha256} is no test report of ${shortName(image)}`)
  }

  /**
   * Forgets a channel, and takes the images off the list that only it ever pointed to: their bytes go with the next `gc`.
   * What nodes run, or another channel points to or may go back to, stays.
   */
  async remove(who: Mover, name: string, channel: string): Promise<Digest[]> {
    const { moves } = await this.#known(name, channel)
    const data = { name, channel, digest: moves[0].digest }
    await this.#store.commit(
      [{ key: keyOf(name, channel), value: null }],
      [{ kind: 'image.unchannelled', actor: who.name, from: who.from, data }],
    )
    const roots = rootsOf((await allObserved(this.#store)).values(), await this.list())
    const freed: Digest[] = []
    for (const digest of new Set(moves.map(move => move.digest as Digest))) {
      const isListed = (await this.#images.images(name)).some(image => image.digest === digest)
      if (!isListed || roots.uses.has(digest)) continue
      await this.#images.remove(`${name}@${digest}`, roots)
      freed.push(digest)
    }
    return freed
  }

  async #move(who: Mover, name: string, channel: string, move: Move): Promise<Moved> {
    const key = keyOf(name, channel)
    const entry = await this.#store.get(key)
    const moves = entry === undefined ? [] : movesOf(entry.value)
    const before = (moves[0]?.digest ?? null) as Digest | null
    const digest = move.digest as Digest
    const moved = { name, channel, digest, before }
    if (before === digest) return { ...moved, isUnchanged: true }
    const value = JSON.stringify({ moves: [move, ...moves].slice(0, KEPT) })
    const event: NewEvent = {
      kind: move.back ? 'image.rolledBack' : 'image.promoted',
      actor: who.name,
      from: who.from,
      data: { ...moved, reason: move.reason, ...(move.from !== undefined && { fromChannel: move.from }) },
    }
    await this.#store.commit([{ key, value, ifRevision: entry?.revision ?? 0 }], [event])
    return { ...moved, isUnchanged: false }
  }

  /** What the site that is in force asks for; before there is one, nothing. */
  async #rules(): Promise<Rules> {
    const entry = await this.#store.get(SETTINGS)
    return entry === undefined ? { trust: { keys: {} }, channels: {} } : SiteSettings.parse(JSON.parse(entry.value))
  }

  async #known(name: string, channel: string): Promise<ChannelHistory> {
    const history = await this.find(name, channel)
    if (history !== undefined) return history
    const others = (await this.list()).map(one => `${one.name}@${one.channel}`)
    const wanted = `${name}@${channel}`
    throw new MusterError('CHANNEL_UNKNOWN', `nothing was ever promoted to ${wanted}${didYouMean(wanted, others)}`)
  }

  /** What NAME@CHANNEL stands for, if that is what is written. */
  async #channelIn(reference: string): Promise<{ readonly channel: string; readonly reference: string } | undefined> {
    const [name = '', channel] = reference.split('@')
    if (channel === undefined || DIGITS.test(channel)) return undefined
    const { moves } = await this.#known(name, channel)
    return { channel, reference: `${name}@${moves[0].digest}` }
  }

  /** Everything that stands between an image and a channel, one sentence each. */
  async #lacking(image: ImageName, manifest: Manifest, channel: string): Promise<string[]> {
    const rules = await this.#rules()
    const rule = rules.channels[channel] ?? {}
    const lacking: string[] = []
    const untrusted = unsigned(manifest, await this.#images.about(image.digest), rules, channel)
    if (untrusted !== undefined) lacking.push(untrusted)
    const untested = await placesToPass(this.#images, image.digest, manifest, rule.tests)
    if (untested.length > 0)
      lacking.push(`its tests have not passed in: ${untested.join(', ')} (muster image test ${image.name})`)
    const most = rule.size === undefined ? undefined : parseSize(rule.size)
    if (most !== undefined && manifest.size > most)
      lacking.push(`its root has ${humanSize(manifest.size)}, and ${channel} takes ${humanSize(most)} at most`)
    if (rule.after !== undefined) {
      const history = await this.find(image.name, rule.after.channel)
      const stayed = history === undefined ? 0 : timeIn(history.moves, image.digest, this.#now())
      const wanted = parseDuration(rule.after.time) ?? 0
      if (stayed < wanted)
        lacking.push(
          `it was in ${rule.after.channel} for ${durationWords(stayed)}, and ${channel} wants ${durationWords(wanted)} there first`,
        )
    }
    return lacking
  }
}

/** A digest, or the beginning of one. */
const DIGITS = /^(sha256:[0-9a-f]+|[0-9a-f]{6,64})$/

const keyOf = (name: string, channel: string): string => `${CHANNEL}${name}/${channel}`

function unsigned(manifest: Manifest, about: About, rules: Rules, channel: string): string | undefined {
  const wanted = rules.channels[channel]?.signed
  if (wanted === undefined) return undefined
  const judged = judgeSignatures(manifest, about.signatures, rules.trust)
  if (judged.some(one => one.isGood && wanted.includes(one.by))) return undefined
  const found = judged.flatMap(one => (one.isGood ? `it is signed by ${one.by}` : one.why))
  return [
    `${channel} wants a signature of ${wanted.join(' or ')}`,
    ...(found.length === 0 ? ['it has none'] : found),
  ].join('; ')
}
