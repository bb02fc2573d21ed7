import { createHash } from 'node:crypto'
import { mkdir, readFile, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { temporaryDir } from '../../site/testing.ts'
import { type StackedLayer, mergeLayers } from '../layers/merge.ts'
import { scanLayer } from '../layers/scan.ts'
import { releaseLayer, releaseText } from './release.ts'

const INPUTS = `sha256:${'1'.repeat(64)}`
const about = { name: 'compute', created: '2026-03-01T12:00:00Z', inputs: INPUTS }

describe('what a node can say of its image', () => {
  test.each<readonly [string, Parameters<typeof releaseText>[0], string]>([
    ['imported', about, `IMAGE_NAME=compute\nIMAGE_INPUTS=${INPUTS}\nIMAGE_TIME=2026-03-01T12:00:00Z\n`],
    [
      'from a commit on a branch',
      { ...about, source: { commit: 'c0ffee', branch: 'main', dirty: false } },
      `IMAGE_NAME=compute\nIMAGE_COMMIT=c0ffee\nIMAGE_BRANCH=main\nIMAGE_INPUTS=${INPUTS}\nIMAGE_TIME=2026-03-01T12:00:00Z\n`,
    ],
    [
      'from a commit with changes on top, on no branch',
      { ...about, source: { commit: 'c0ffee', dirty: true } },
      `IMAGE_NAME=compute\nIMAGE_COMMIT=c0ffee+dirty\nIMAGE_INPUTS=${INPUTS}\nIMAGE_TIME=2026-03-01T12:00:00Z\n`,
    ],
  ])('%s', (_, image, text) => {
    expect(releaseText(image)).toBe(text)
  })
})

const TIME = 1_772_366_400
const TEXT = 'IMAGE_NAME=compute\n'
const FILE = {
  type: 'file',
  mode: 0o644,
  uid: 0,
  gid: 0,
  mtime: TIME,
  size: 19,
  sha256: createHash('sha256').update(TEXT).digest('hex'),
} as const

async function stack(make: (root: string) => Promise<unknown>): Promise<StackedLayer> {
  const root = await temporaryDir()
  await make(root)
  return { root, ...(await scanLayer(root, TIME)) }
}

describe('the last layer of an image', () => {
  test('is one file', async () => {
    const below = await stack(root => mkdir(join(root, 'etc')))
    const dir = join(await temporaryDir(), 'release')
    const layer = await releaseLayer(dir, mergeLayers([below]), TEXT, TIME)
    expect(layer).toEqual({ root: dir, entries: [{ ...FILE, path: 'etc/image-release' }], gone: [], opaque: [] })
    expect(await readFile(join(dir, 'etc/image-release'), 'utf8')).toBe(TEXT)
  })

  test('leaves everything else as it was', async () => {
    const below = await stack(root => mkdir(join(root, 'etc'), { mode: 0o711 }))
    const layer = await releaseLayer(join(await temporaryDir(), 'release'), mergeLayers([below]), TEXT, TIME)
    const tree = mergeLayers([below, layer])
    expect(tree.entries.map(({ path, mode }) => [path, mode])).toEqual([
      ['', 0o700],
      ['etc', 0o711],
      ['etc/image-release', 0o644],
    ])
    const file = tree.get('etc/image-release')
    expect(file?.type === 'file' && (await readFile(tree.locate(file), 'utf8'))).toBe(TEXT)
  })

  test('brings the directory where there is none', async () => {
    const below = await stack(() => Promise.resolve())
    const layer = await releaseLayer(join(await temporaryDir(), 'release'), mergeLayers([below]), TEXT, TIME)
    expect(mergeLayers([below, layer]).entries.slice(1)).toEqual([
      { type: 'directory', path: 'etc', mode: 0o755, uid: 0, gid: 0, mtime: TIME },
      { ...FILE, path: 'etc/image-release' },
    ])
  })

  test('lies where /etc leads', async () => {
    const below = await stack(async root => {
      await mkdir(join(root, 'usr/etc'), { recursive: true })
      await symlink('/usr/etc', join(root, 'etc'))
    })
    const layer = await releaseLayer(join(await temporaryDir(), 'release'), mergeLayers([below]), TEXT, TIME)
    expect(layer.entries).toEqual([{ ...FILE, path: 'usr/etc/image-release' }])
    expect(mergeLayers([below, layer]).get('etc')?.type).toBe('symlink')
  })
})
