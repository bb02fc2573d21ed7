import { mkdir, writeFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import type { ApiClient } from '../../api/client.ts'
import { RemoteImages } from '../../api/client-images.ts'
import type { ChannelMoved } from '../../api/schemas.ts'
import type { ImageStore } from '../../images/store/store.ts'
import { checkTestFolders } from '../../images/tests/check-folders.ts'
import { reportOf } from '../../images/tests/kept.ts'
import { pushImage } from '../../images/transfer.ts'
import { exists } from '../../lib/dirs.ts'
import { MusterError, messageOf } from '../../lib/errors.ts'
import { Mutex } from '../../lib/mutex.ts'
import { checkSite } from '../../site/check.ts'
import { siteInvalid } from '../../site/problems.ts'
import { readRecipe, recipeNames } from '../../site/render-recipe.ts'
import { type Site, openSite } from '../../site/site.ts'
import { directorySource } from '../../site/source.ts'
import { apart } from '../ci/apart.ts'
import { atOnce } from '../ci/at-once.ts'
import { branchChannel } from '../ci/branch.ts'
import { type BudgetFlags, imagesAtOnce } from '../ci/budget.ts'
import { describeChange } from '../ci/compare.ts'
import { buildOrder } from '../ci/order.ts'
import { PIPELINES, type Pipeline } from '../ci/pipelines.ts'
import { section } from '../ci/sections.ts'
import { type CiImage, markdown } from '../ci/summary.ts'
import { connect, siteDir } from '../connect.ts'
import type { Call } from '../define.ts'
import { imageStore, shortDigest } from '../images.ts'
import { plural } from '../output.ts'
import { type BuildFlags, buildOne } from './image-build.ts'
import { type SignOptions, canSign, signImage } from './image-sign.ts'
import { mustPass } from './image-test.ts'

interface CiFlags extends BuildFlags, SignOptions, BudgetFlags {
  readonly channel?: string
  readonly summary?: string
}

/** Everything from the site to a channel; whatever fails stops that image, and the others go on. */
export async function run(call: Call<CiFlags>): Promise<number> {
  const { io, out, options } = call
  const dir = await siteDir(io, options)
  const site = await section(io, 'check the site', () => validSite(dir))
  const names = [...new Set(call.rest.length > 0 ? call.rest : recipeNames(site))]
  for (const name of names) readRecipe(site, name)
  const store = await imageStore(io, options)
  const channel = options.channel ?? (await branchChannel(io, dir))
  const most = imagesAtOnce(options, { cores: availableParallelism(), memory: process.availableMemory() })
  const place = { dir, site, store, channel, turns: new Mutex(), signing: new Mutex() }
  const work = most === 1 || names.length === 1 ? runHere : runApart
  const images = await atOnce(buildOrder(site, names), most, name => work(call, { ...place, name }))
  if (options.summary !== undefined) await writeFile(resolve(io.cwd, options.summary), `${markdown(images)}\n`)
  const failed = images.filter(image => image.failed !== undefined)
  await out.result({ channel: channel ?? null, images }, () => images.map(lineOf))
  if (failed.length > 0 && out.isForPeople) out.note(`${plural(failed.length, 'image')} failed`)
  return failed.length > 0 ? 1 : 0
}

/** The same as muster site check. */
async function validSite(dir: string): Promise<Site> {
  const site = await openSite(await directorySource(dir))
  const problems = [...checkSite(site), ...(await checkTestFolders(dir, site.files.images)).problems]
  if (problems.length > 0) throw siteInvalid(problems)
  return site
}

interface Place {
  readonly dir: string
  readonly site: Site
  readonly store: ImageStore
  readonly name: string
  readonly channel: string | undefined
  readonly turns: Mutex
  /** A token that somebody touches, an HSM: one at a time. */
  readonly signing: Mutex
}

function runHere(call: Call<CiFlags>, place: Place): Promise<CiImage> {
  if (call.io.interrupted.aborted) throw new MusterError('ABORTED', 'interrupted')
  return new ImageRun(call, place).run()
}

/** What it says is printed when it has ended, however it ends, and nothing of another stands in between. */
async function runApart(call: Call<CiFlags>, place: Place): Promise<CiImage> {
  const { io, print } = apart(call.io)
  call.io.stderr.write(`${place.name}: begins\n`)
  try {
    return await runHere({ ...call, io }, place)
  } finally {
    print()
  }
}

/** One image on its way. */
class ImageRun {
  readonly #call: Call<CiFlags>
  readonly #place: Place
  #image: CiImage

  constructor(call: Call<CiFlags>, place: Place) {
    this.#call = call
    this.#place = place
    this.#image = { name: place.name }
  }

  async run(): Promise<CiImage> {
    const { io, options } = this.#call
    const { store, dir, name, channel } = this.#place
    const hasServer = options.server !== undefined || (io.env['MUSTER_SERVER'] ?? '') !== ''
    const client = hasServer ? connect(io, options) : undefined
    try {
      await this.#step('build', async () => {
        const built = await buildOne(this.#call, name, this.#place)
        this.#note(await describeChange(built, store, client, io.interrupted))
      })
      await this.#step('test', () => this.#test(dir))
      if (canSign(io, options))
        await this.#step('sign', async () => {
          const { key } = await this.#place.signing.run(() => signImage(io, store, name, options))
          this.#note({ signedBy: key })
        })
      if (client === undefined) return this.#image
      await this.#step('push', async () => {
        const { bytes } = await pushImage(new RemoteImages(client), store, name, { signal: io.interrupted })
        this.#note({ sent: bytes })
      })
      if (channel !== undefined) await this.#step('promote', () => this.#promote(client, channel))
    } catch (error) {
      if (io.interrupted.aborted) throw error
      const details = error instanceof MusterError ? error.details : []
      io.stderr.write(`error: ${messageOf(error)}\n${details.map(line => `  ${line}\n`).join('')}`)
      this.#note({ failed: { step: this.#at, message: messageOf(error), details } })
    }
    return this.#image
  }

  #at = ''

  #step(step: string, work: () => Promise<void>): Promise<void> {
    this.#at = step
    return section(this.#call.io, `${step} ${this.#place.name}`, work)
  }

  #note(more: Partial<CiImage>): void {
    this.#image = { ...this.#image, ...more }
  }

  async #test(dir: string): Promise<void> {
    const { store, name } = this.#place
    try {
      await mustPass(this.#call.io, store, dir, name)
    } finally {
      const { digest } = await store.find(name)
      const report = await reportOf(store, digest)
      if (report !== undefined) {
        const count = (status: string): number => report.results.filter(one => one.status === status).length
        this.#note({ tests: { passed: count('passed'), failed: count('failed'), places: report.places } })
      }
    }
  }

  async #promote(client: ApiClient, channel: string): Promise<void> {
    const { store, name } = this.#place
    const { digest } = await store.find(name)
    const commit = (await store.manifest(digest)).source?.commit
    const body = {
      image: `${name}@${digest}`,
      reason: commit === undefined ? 'ci' : `ci, commit ${commit.slice(0, 12)}`,
    }
    const path = `/api/v1/channels/${name}/${channel}`
    const moved = await client.send<ChannelMoved>('PUT', path, body)
    this.#note({ channel: moved.channel })
  }
}

function lineOf({ name, digest, tests, signedBy, sent, channel, failed }: CiImage): string {
  const words = [
    ...(tests === undefined
      ? []
      : [tests.failed > 0 ? `${tests.failed} tests failed` : `${tests.passed} tests passed`]),
    ...(signedBy === undefined ? [] : [`signed by ${signedBy}`]),
    ...(sent === undefined ? [] : ['pushed']),
    ...(channel === undefined ? [] : [`${name}@${channel}`]),
    ...(failed === undefined ? [] : [`failed: ${failed.step}`]),
  ]
  return [name, digest === undefined ? '-' : shortDigest(digest), words.join(', ')].join('  ').trimEnd()
}

/** Writes the file that makes a CI system call `muster ci run`. */
export async function init(call: Call<{ force?: boolean }>): Promise<void> {
  const {
    io,
    out,
    options,
    args: [system = ''],
  } = call
  const dir = await siteDir(io, options)
  const { path, text } = PIPELINES[system as Pipeline]
  const file = join(dir, path)
  if (options.force !== true && (await exists(file)))
    throw new MusterError('FILE_UNWRITABLE', `${path} is there already`, { hint: 'say --force to write it anew' })
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, text)
  await out.result({ path: file }, () => [`${path} written: look at it, then commit it`])
}
