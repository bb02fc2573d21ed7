import { createHash } from 'node:crypto'
import { chmod, writeFile } from 'node:fs/promises'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { z } from 'zod'
import { type Manifest, manifestText } from '../../images/manifest.ts'
import { hexOf } from '../../images/store/contents.ts'
import { makeManifest, publishImage } from '../../images/store/testing.ts'
import { ImageList, ImageNameReply, ProblemReply } from '../schemas.ts'
import { type Reply, type TestServer, startTestServer } from '../testing.ts'

let server: TestServer
let token: string
/** The revision before the test. */
let seen: number
const uses = new Map<`sha256:${string}`, string>()

beforeAll(async () => {
  server = await startTestServer({ imageRoots: async () => ({ uses }) })
  token = await server.token('operator')
  seen = await server.store.revision()
})
afterAll(() => server[Symbol.asyncDispose]())
afterEach(async () => {
  uses.clear()
  for (const { digest } of await server.images.list()) await server.images.remove(digest, { uses })
  seen = await server.store.revision()
})

const ask = (method: string, path: string, body?: unknown): Promise<Reply> => server.ask(method, path, { token, body })

async function ok<Schema extends z.ZodType>(schema: Schema, method: string, path: string, body?: unknown) {
  const reply = await ask(method, path, body)
  expect({ path, status: reply.status }).toEqual({ path, status: 200 })
  return schema.parse(reply.body)
}

async function problem(method: string, path: string, body?: unknown): Promise<ProblemReply & { status: number }> {
  const reply = await ask(method, path, body)
  return { status: reply.status, ...ProblemReply.parse(reply.body) }
}

const events = async () =>
  (await server.store.events({ after: seen })).map(({ kind, actor, data }) => ({ kind, actor, data }))

describe('the list of images', () => {
  it('says of each what it is, those of a name newest first', async () => {
    expect(await ok(ImageList, 'GET', '/api/v1/images')).toEqual({ items: [] })
    const old = await publishImage(server.images, 'compute', { squashfs: 'one' })
    const fresh = await publishImage(server.images, 'compute', { squashfs: 'two' })
    const { os: _, kernel: __, ...bare } = makeManifest('bare', [])
    const plain = await server.images.publish(bare)
    const { items } = await ok(ImageList, 'GET', '/api/v1/images')
    expect(items.map(item => item.digest)).toEqual([plain, fresh.digest, old.digest])
    expect(items[0]).toMatchObject({ name: 'bare', os: null, kernel: null, arch: 'amd64' })
    expect(items[1]).toEqual({
      name: 'compute',
      digest: fresh.digest,
      created: '2026-03-01T12:00:00Z',
      built: (await server.images.latest('compute'))?.built,
      size: 123_456,
      arch: 'amd64',
      os: 'Debian GNU/Linux 12 (bookworm)',
      kernel: '6.1.0-30-amd64',
    })
  })

  it('shows an image whose manifest is damaged, and those beside it', async () => {
    const { digest } = await publishImage(server.images, 'compute', { squashfs: 'one' })
    await publishImage(server.images, 'login', { squashfs: 'one' })
    const file = server.images.pathOf(hexOf(digest))
    await chmod(file, 0o600)
    await writeFile(file, 'rubbish')
    const { items } = await ok(ImageList, 'GET', '/api/v1/images')
    expect(items.map(item => [item.name, item.arch, item.size])).toEqual([
      ['compute', null, null],
      ['login', 'amd64', 123_456],
    ])
  })
})

describe('a manifest', () => {
  it('is given by name and digest, or the newest, to the byte as it is stored', async () => {
    const old = await publishImage(server.images, 'compute', { squashfs: 'one' })
    const fresh = await publishImage(server.images, 'compute', { squashfs: 'two' })
    for (const [reference, { digest, manifest }] of [
      ['latest', fresh],
      [fresh.digest, fresh],
      [old.digest, old],
      [old.digest.slice(0, 20), old],
      [hexOf(old.digest).slice(0, 12), old],
    ] as const) {
      const reply = await ask('GET', `/api/v1/images/compute/${reference}`)
      expect({ reference, status: reply.status, text: reply.text }).toEqual({
        reference,
        status: 200,
        text: manifestText(manifest),
      })
      expect(reply.headers['content-type']).toMatch(/^application\/json/)
      expect(reply.headers['etag']).toBe(`"${digest}"`)
      expect(`sha256:${createHash('sha256').update(reply.text).digest('hex')}`).toBe(digest)
    }
  })

  it.for([
    ['compute/sha256:ffffff', 'IMAGE_UNKNOWN', 404],
    ['compute/fff', 'IMAGE_UNKNOWN', 404],
    ['comptue/latest', 'IMAGE_UNKNOWN', 404],
    ['..%2f..%2fetc/latest', 'IMAGE_UNKNOWN', 404],
    ['compute/..%2f..', 'IMAGE_UNKNOWN', 404],
    [`compute/${'f'.repeat(72)}`, 'REQUEST_INVALID', 400],
    [`${'x'.repeat(64)}/latest`, 'REQUEST_INVALID', 400],
  ] as const)('that is not there is a problem: %s', async ([path, code, status]) => {
    await publishImage(server.images, 'compute', { squashfs: 'one' })
    expect(await problem('GET', `/api/v1/images/${path}`)).toMatchObject({ code, status })
  })

  it('of a misspelt name comes with the right one', async () => {
    await publishImage(server.images, 'compute', { squashfs: 'one' })
    const { message } = await problem('GET', '/api/v1/images/comptue/latest')
    expect(message).toBe('no image is named comptue — did you mean compute?')
  })
})

describe('publishing an image', () => {
  it('whose blobs are here makes it the newest of its name, and an event', async () => {
    const kernel = await server.images.put('vmlinuz')
    const manifest = makeManifest('compute', [{ type: 'kernel', ...kernel }])
    const image = await ok(ImageNameReply, 'PUT', '/api/v1/images/compute', manifest)
    expect(await server.images.resolve('compute')).toEqual({ ...image, manifest })
    expect(await events()).toEqual([{ kind: 'image.published', actor: 'operator', data: image }])
  })

  it('that is not whole is refused', async () => {
    const sha256 = '0'.repeat(64)
    const manifest = makeManifest('compute', [{ type: 'kernel', sha256, size: 7 }])
    expect(await problem('PUT', '/api/v1/images/compute', manifest)).toMatchObject({
      status: 409,
      code: 'IMAGE_INCOMPLETE',
      details: [`kernel: ${sha256} is missing`],
    })
    expect(await server.images.names()).toEqual([])
    expect(await events()).toEqual([])
  })

  it.for([
    ['another name', { name: 'login' }, 'the manifest is of login, not of compute'],
    ['no name', { name: '../x' }, 'the body is not valid'],
    ['another schema', { schema: 'muster.image/2' }, 'the body is not valid'],
    ['a field nobody knows', { evil: true }, 'the body is not valid'],
    ['no digest', { tree: 'x' }, 'the body is not valid'],
    [
      'an artefact nobody knows',
      { artefacts: [{ type: 'x', sha256: '0'.repeat(64), size: 1 }] },
      'the body is not valid',
    ],
    ['a path for a digest', { artefacts: [{ type: 'log', sha256: '../x', size: 1 }] }, 'the body is not valid'],
    [
      'a size below nothing',
      { artefacts: [{ type: 'log', sha256: '0'.repeat(64), size: -1 }] },
      'the body is not valid',
    ],
  ] as const)('is refused for a manifest with %s', async ([, change, message]) => {
    const manifest = { ...makeManifest('compute', []), ...change } as Manifest
    expect(await problem('PUT', '/api/v1/images/compute', manifest)).toMatchObject({
      status: 400,
      code: 'REQUEST_INVALID',
      message,
    })
    expect(await server.images.names()).toEqual([])
  })
})

describe('removing an image', () => {
  it('takes it off its list, and makes an event', async () => {
    const { digest } = await publishImage(server.images, 'compute', { squashfs: 'one' })
    const image = await ok(ImageNameReply, 'DELETE', `/api/v1/images/compute/${digest}`)
    expect(image).toEqual({ name: 'compute', digest })
    expect(await server.images.names()).toEqual([])
    expect(await events()).toEqual([{ kind: 'image.removed', actor: 'operator', data: image }])
    expect(await problem('DELETE', `/api/v1/images/compute/${digest}`)).toMatchObject({ code: 'IMAGE_UNKNOWN' })
  })

  it('is refused while it is in use', async () => {
    const { digest } = await publishImage(server.images, 'compute', { squashfs: 'one' })
    uses.set(digest, 'channel stable')
    expect(await problem('DELETE', `/api/v1/images/compute/${digest}`)).toMatchObject({
      status: 409,
      code: 'IMAGE_IN_USE',
      message: `compute@${digest.slice(0, 19)} is in use by channel stable`,
    })
    expect(await events()).toEqual([])
  })

  it('needs the whole digest, and that of the name', async () => {
    const { digest } = await publishImage(server.images, 'compute', { squashfs: 'one' })
    for (const part of [digest.slice(0, 30), hexOf(digest), 'latest'])
      expect(await problem('DELETE', `/api/v1/images/compute/${part}`)).toMatchObject({ code: 'REQUEST_INVALID' })
    await publishImage(server.images, 'login', { squashfs: 'two' })
    expect(await problem('DELETE', `/api/v1/images/login/${digest}`)).toMatchObject({ code: 'IMAGE_UNKNOWN' })
  })
})
