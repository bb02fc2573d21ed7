import { chmod, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { hexOf } from './contents.ts'
import { findings, makeStore, publishImage } from './testing.ts'

/** A part is missing, one was changed, one cut short. */
async function damaged() {
  const temporary = await makeStore()
  const { store } = temporary
  const { digest, manifest } = await publishImage(store, 'compute', {
    kernel: 'vmlinuz',
    initrd: 'initrd',
    squashfs: 'root',
    erofs: 'other root',
    log: 'building',
  })
  const [, initrd, squashfs, erofs] = manifest.artefacts.map(artefact => store.pathOf(artefact.sha256))
  await rm(initrd ?? '')
  await overwrite(squashfs ?? '', 'roof')
  await overwrite(erofs ?? '', 'oth')
  return { ...temporary, digest, manifest }
}

describe('verifying', () => {
  it('reads everything, and says of each part what is wrong with it', async () => {
    await using temporary = await damaged()
    const { store, digest, manifest } = temporary
    const found = await findings(store, 'compute')
    expect(found.map(({ type, problem }) => [type, problem])).toEqual([
      ['manifest', undefined],
      ['kernel', undefined],
      ['initrd', 'missing'],
      ['squashfs', 'wrong digest'],
      ['erofs', 'wrong size'],
      ['log', undefined],
    ])
    expect(found[2]).toEqual({
      name: 'compute',
      digest,
      type: 'initrd',
      sha256: manifest.artefacts[1]?.sha256,
      problem: 'missing',
    })
  })

  it('takes damaged blobs away, if asked to, so that they can be brought again', async () => {
    await using temporary = await damaged()
    const { store, manifest } = temporary
    await findings(store, 'compute', { discard: true })
    const wanted = manifest.artefacts.map(artefact => artefact.sha256)
    expect(await store.missing(wanted)).toEqual([wanted[1], wanted[2], wanted[3]])
  })

  it.for([
    ['is gone', undefined, 'missing'],
    ['was changed', 'rubbish', 'wrong digest'],
  ] as const)('says when a manifest %s', async ([, text, problem]) => {
    await using temporary = await makeStore()
    const { store } = temporary
    const { digest } = await publishImage(store, 'compute', { kernel: 'vmlinuz' })
    const file = store.pathOf(hexOf(digest))
    if (text === undefined) await rm(file)
    else await overwrite(file, text)
    expect(await findings(store)).toEqual([
      { name: 'compute', digest, type: 'manifest', sha256: hexOf(digest), problem },
    ])
  })

  it('says when what is listed is no manifest', async () => {
    await using temporary = await makeStore()
    const { store, dir } = temporary
    const { sha256 } = await store.put('{"schema":"muster.image/99"}')
    const listed = {
      digest: `sha256:${sha256}`,
      created: '2026-03-01T12:00:00Z',
      built: '2026-03-01T12:00:00Z',
      inputs: `sha256:${'1'.repeat(64)}`,
    }
    await writeFile(join(dir, 'names/compute.json'), JSON.stringify({ images: [listed] }))
    const [finding] = await findings(store)
    expect(finding?.problem).toBe('not a manifest')
    await expect(store.resolve('compute')).rejects.toMatchObject({ code: 'IMAGE_DAMAGED' })
  })

  it('goes through all images unless one is named', async () => {
    await using temporary = await makeStore()
    const { store } = temporary
    await publishImage(store, 'compute', { kernel: 'vmlinuz' })
    await publishImage(store, 'compute', { kernel: 'vmlinuz 2' })
    await publishImage(store, 'login', { kernel: 'vmlinuz' })
    expect((await findings(store)).length).toBe(6)
    expect((await findings(store, 'login')).length).toBe(2)
  })
})

async function overwrite(file: string, text: string): Promise<void> {
  await chmod(file, 0o600)
  await writeFile(file, text)
}
