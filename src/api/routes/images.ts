import { z } from 'zod'
import { MusterError } from '../../lib/errors.ts'
import { type Digest, Digest as DigestSchema, Manifest, manifestText } from '../../images/manifest.ts'
import { About, mergeAbout } from '../../images/store/about.ts'
import type { ImageEntry, ImageStore } from '../../images/store/store.ts'
import type { NewEvent } from '../../state/store.ts'
import type { Actor } from '../../control/actor.ts'
import { type Routes, actorOf, typed } from '../context.ts'
import { ImageItem, ImageList, ImageNameReply } from '../schemas.ts'

const tags = ['images']
const NEWEST = 'latest'

export const imageRoutes: Routes = (app, { images, channels, store, imageRoots }) => {
  typed(app).get(
    '/api/v1/images',
    {
      config: { role: 'viewer' },
      schema: { summary: 'List images, those of a name newest first', tags, response: { 200: ImageList } },
    },
    async () => {
      const items: ImageItem[] = []
      for (const entry of await images.list()) items.push(await itemOf(images, entry))
      return { items }
    },
  )

  const one = z.strictObject({
    name: z.string().max(63),
    reference: z.string().max(71).describe(`First digits of a digest, or ${NEWEST}.`),
  })
  typed(app).get(
    '/api/v1/images/:name/:reference',
    {
      config: { role: 'viewer' },
      schema: { summary: 'The manifest of an image, as it is stored', tags, params: one, response: { 200: Manifest } },
    },
    async ({ params: { name, reference } }, reply) => {
      const { digest, manifest } = await images.resolve(reference === NEWEST ? name : `${name}@${reference}`)
      // To the byte what the digest is of.
      void reply.type('application/json').header('etag', `"${digest}"`)
      return reply.send(manifestText(manifest) as unknown as Manifest)
    },
  )

  typed(app).put(
    '/api/v1/images/:name',
    {
      config: { role: 'operator' },
      schema: {
        summary: 'Publish an image whose blobs are all here',
        tags,
        params: z.strictObject({ name: z.string().max(63) }),
        body: Manifest,
        response: { 200: ImageNameReply },
      },
    },
    async request => {
      const { name } = request.params
      if (request.body.name !== name)
        throw new MusterError('REQUEST_INVALID', `the manifest is of ${request.body.name}, not of ${name}`)
      const image = { name, digest: await images.publish(request.body) }
      await store.commit([], [eventOf('image.published', actorOf(request), image)])
      return image
    },
  )

  const exactly = z.strictObject({ name: z.string().max(63), reference: DigestSchema })
  typed(app).get(
    '/api/v1/images/:name/:reference/about',
    {
      config: { role: 'viewer' },
      schema: { summary: 'Signatures and test report of an image', tags, params: exactly, response: { 200: About } },
    },
    async ({ params: { name, reference } }) => images.about((await images.resolve(`${name}@${reference}`)).digest),
  )

  typed(app).put(
    '/api/v1/images/:name/:reference/about',
    {
      config: { role: 'operator' },
      schema: {
        summary: 'Add signatures and a test report, whose blob is here, to an image',
        tags,
        params: exactly,
        body: About,
        response: { 200: About },
      },
    },
    async request => {
      const { name } = request.params
      const { digest, manifest } = await images.resolve(`${name}@${request.params.reference}`)
      const { signatures, report } = request.body
      // When a signature came is ours to say.
      const seen = new Date().toISOString()
      const came = { signatures: signatures.map(one => ({ ...one, seen })), ...(report && { report }) }
      await channels.accept({ name, digest }, manifest, came)
      const about = await images.describe(digest, known => mergeAbout(known, came))
      await store.commit([], [eventOf('image.described', actorOf(request), { name, digest })])
      return about
    },
  )

  typed(app).delete(
    '/api/v1/images/:name/:reference',
    {
      config: { role: 'operator' },
      schema: {
        summary: 'Take an image off the list of its name',
        tags,
        // Not by a part of it: what is removed should be meant.
        params: z.strictObject({ name: z.string().max(63), reference: DigestSchema }),
        response: { 200: ImageNameReply },
      },
    },
    async request => {
      const { name, reference } = request.params
      const image = await images.remove(`${name}@${reference}`, (await imageRoots?.()) ?? { uses: new Map() })
      await store.commit([], [eventOf('image.removed', actorOf(request), image)])
      return image
    },
  )
}

const eventOf = (kind: string, actor: Actor, image: { name: string; digest: Digest }): NewEvent => ({
  kind,
  actor: actor.name,
  from: actor.from,
  data: image,
})

/** An image that is damaged is listed with what is known of it, and does not hide the others. */
async function itemOf(images: ImageStore, { name, digest, created, built }: ImageEntry): Promise<ImageItem> {
  const manifest = await images.manifest(digest).catch((error: unknown) => {
    if (error instanceof MusterError && ['IMAGE_DAMAGED', 'IMAGE_UNKNOWN'].includes(error.code)) return undefined
    throw error
  })
  return {
    name,
    digest,
    created,
    built,
    size: manifest?.size ?? null,
    arch: manifest?.arch ?? null,
    os: manifest?.os?.name ?? manifest?.os?.id ?? null,
    kernel: manifest?.kernel?.version ?? null,
  }
}
