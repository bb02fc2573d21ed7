import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import type { Artefact, ArtefactType, Manifest } from '../../images/manifest.ts'
import { type ResolvedImage, openImageStore } from '../../images/store/store.ts'
import { temporaryDir } from '../../site/testing.ts'
import { openTrialServer } from './server.ts'

const DIGEST = `sha256:${'a'.repeat(64)}` as const
const sha256Of = (text: string): string => createHash('sha256').update(text).digest('hex')
const artefact = (type: ArtefactType): Artefact => ({ type, sha256: sha256Of(type), size: type.length })

const imageOf = (...types: ArtefactType[]): ResolvedImage => ({
  name: 'compute',
  digest: DIGEST,
  manifest: {
    schema: 'muster.image/1',
    name: 'compute',
    arch: 'amd64',
    created: '2026-01-01T00:00:00Z',
    inputs: DIGEST,
    tree: DIGEST,
    kernel: { version: '6.1.0-30-amd64', modules: [] },
    size: 1000,
    artefacts: types.map(artefact),
  } satisfies Manifest,
})

const store = async () => openImageStore(await temporaryDir())

test('a node gets what every node with that image gets', async () => {
  await using server = await openTrialServer(
    imageOf('kernel', 'initrd', 'squashfs', 'cpio.zst'),
    await store(),
    () => {},
  )
  expect(server.decision.form).toBe('squashfs')
  expect(server.boot).toMatch(/^[0-9a-f]{16}$/)
  expect(server.args).toEqual([
    'muster.root=squashfs',
    `muster.sha256=${sha256Of('squashfs')}`,
    'muster.size=8',
    'muster.overlay=50%',
    'muster.kernel=6.1.0-30-amd64',
    'muster.manifest=941',
    // Signed by a key of its own.
    expect.stringMatching(/^muster\.signature=[A-Za-z0-9+/]{99}=$/),
    'muster.node=muster-test',
    `muster.boot=${server.boot}`,
    'muster.mac=52:54:00:74:72:79',
    'muster.servers=http://10.0.2.100:7180',
    `muster.image=${DIGEST}`,
    'systemd.hostname=muster-test',
  ])
})

test('without a squashfs it is the whole image as one cpio', async () => {
  await using server = await openTrialServer(imageOf('kernel', 'cpio.gz'), await store(), () => {})
  expect(server.decision.form).toBe('cpio')
  expect(server.args[0]).toBe('muster.node=muster-test')
})

test('what no machine can boot is said before one is started', async () => {
  await expect(openTrialServer(imageOf('squashfs'), await store(), () => {})).rejects.toThrow(
    'no machine can boot it: image compute has no kernel',
  )
})

test('its root is fetched, its phases are heard; those of other boots are not', async () => {
  const images = await store()
  for (const content of ['squashfs', 'of another image']) await images.put(content)
  const seen: string[] = []
  const image = imageOf('kernel', 'initrd', 'squashfs')
  await using server = await openTrialServer(image, images, ({ phase, detail }) =>
    seen.push(`${phase} ${detail ?? ''}`),
  )
  const url = `http://127.0.0.1:${server.port}`
  expect(await (await fetch(`${url}/blob/${sha256Of('squashfs')}`)).text()).toBe('squashfs')
  expect((await fetch(`${url}/blob/${sha256Of('of another image')}`)).status).toBe(404)
  const report = async (boot: string, phase: string, detail?: string): Promise<number> => {
    const body = JSON.stringify({ boot, mac: '52:54:00:74:72:79', phase, ago: 0, detail })
    return (await fetch(`${url}/node/report`, { method: 'POST', body })).status
  }
  expect(await report(server.boot, 'agent', 'not ready: ib0')).toBe(204)
  expect(await report('0123456789abcdef', 'ready')).toBe(204)
  expect(await report(server.boot, 'ready')).toBe(204)
  expect(seen).toEqual(['agent not ready: ib0', 'ready '])
})
