import { mkdir, readdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { Recipe } from '../../site/recipe.ts'
import { type Files, directoryOf, temporaryDir, writeFiles } from '../../site/testing.ts'
import { type StackedLayer, mergeLayers } from '../layers/merge.ts'
import { scanLayer } from '../layers/scan.ts'
import { globToRegExp, prunedPaths, pruneStage } from './prune.ts'

async function layerOf(root: string): Promise<StackedLayer> {
  return { root, ...(await scanLayer(root, 0)) }
}

const pruned = async (files: readonly string[], ...prune: string[]): Promise<string[]> => {
  const root = await directoryOf(Object.fromEntries(files.map(path => [path, ''])))
  return prunedPaths((await layerOf(root)).entries, prune)
}

describe('patterns', () => {
  test.each<readonly [glob: string, yes: readonly string[], no: readonly string[]]>([
    [
      '/usr/share/icons',
      ['usr/share/icons'],
      ['usr/share/icons2', 'usr/share', 'usr/share/icons/a', 'x/usr/share/icons'],
    ],
    ['/usr/share/icons/', ['usr/share/icons'], ['usr/share/icons/a']],
    ['/usr/*/a', ['usr/x/a', 'usr/.x/a'], ['usr/a', 'usr/x/y/a', 'usr/x/ab']],
    ['/usr/share/*.txt', ['usr/share/a.txt', 'usr/share/.txt'], ['usr/share/atxt', 'usr/share/a.txt.gz']],
    ['/usr/**/*.pyc', ['usr/a.pyc', 'usr/a/b.pyc', 'usr/a/b/c.pyc'], ['usr/a.py', 'a.pyc', 'usra.pyc']],
    ['/usr/**', ['usr/a', 'usr/a/b'], ['usr', 'usra']],
    ['/a?c', ['abc', 'a.c'], ['ac', 'abbc', 'a/c']],
    ['/a/!(b|c.d)', ['a/x', 'a/bb', 'a/cxd'], ['a/b', 'a/c.d', 'a', 'a/x/y']],
    ['/a/!(b|c)/e', ['a/x/e'], ['a/x', 'a/x/y/e']],
    [
      '/doc/**!(copyright)',
      ['doc/a/x', 'doc/a/b/x', 'doc/a/copyright.gz'],
      ['doc/a', 'doc/a/copyright', 'doc/a/b/copyright'],
    ],
    ['/a.b+(c)[d]{e}^$|\\', ['a.b+(c)[d]{e}^$|\\'], ['axb+(c)[d]{e}^$|\\', 'a.b']],
    ['/a\n*', ['a\nb', 'a\n\n'], ['a']],
  ])('%j', (glob, yes, no) => {
    const matcher = globToRegExp(glob)
    expect([...yes, ...no].filter(path => matcher.test(path))).toEqual(yes)
  })
})

describe('what is taken out', () => {
  test('the highest of what matches, each once', async () => {
    expect(await pruned(['a/b/c', 'a/b2/c', 'b/b'], '/a/b', '/a/**', '/**/c', '/b/b')).toEqual(['a/b', 'a/b2', 'b/b'])
  })

  test('a name that begins with another is not below it', async () => {
    expect(await pruned(['a/x', 'ab/x', 'a.b/x'], '/a', '/ab/x', '/a.b/x')).toEqual(['a', 'a.b/x', 'ab/x'])
  })

  test('never the root itself', async () => {
    expect(await pruned(['a'], '/', '/**')).toEqual(['a'])
  })

  test('locales, but those everybody needs', async () => {
    expect(
      await pruned(
        [
          'usr/share/locale/de/LC_MESSAGES/bash.mo',
          'usr/share/locale/locale.alias',
          'usr/share/i18n/locales/de_DE',
          'usr/share/i18n/charmaps/UTF-8.gz',
          'usr/lib/locale/C.utf8/LC_CTYPE',
          'usr/lib/locale/locale-archive',
          'usr/lib/locale/de_DE.utf8/LC_CTYPE',
        ],
        'locales',
      ),
    ).toEqual([
      'usr/lib/locale/de_DE.utf8',
      'usr/lib/locale/locale-archive',
      'usr/share/i18n/locales/de_DE',
      'usr/share/locale/de',
      'usr/share/locale/locale.alias',
    ])
  })

  test('documentation, but licences', async () => {
    expect(
      await pruned(
        [
          'usr/share/doc/bash/README',
          'usr/share/doc/bash/copyright',
          'usr/share/doc/bash/examples/a/b',
          'usr/share/man/man1/bash.1.gz',
          'usr/share/info/dir',
          'usr/share/gtk-doc/html/a',
          'usr/share/lintian/overrides/bash',
          'usr/share/misc/doc',
        ],
        'documentation',
      ),
    ).toEqual([
      'usr/share/doc/bash/README',
      'usr/share/doc/bash/examples',
      'usr/share/gtk-doc',
      'usr/share/info/dir',
      'usr/share/lintian',
      'usr/share/man/man1',
    ])
  })

  test('caches, but the directories they are in', async () => {
    expect(
      await pruned(
        [
          'var/cache/apt/pkgcache.bin',
          'var/cache/man/de/x',
          'var/cache/top',
          'var/lib/apt/lists/a',
          'usr/share/mime/mime.cache',
        ],
        'caches',
      ),
    ).toEqual(['usr/share/mime/mime.cache', 'var/cache/apt/pkgcache.bin', 'var/cache/man/de', 'var/lib/apt/lists/a'])
  })

  test('nothing where nothing matches', async () => {
    expect(await pruned(['usr/bin/sh'], 'locales', 'documentation', 'caches', '/opt')).toEqual([])
  })
})

const stageFor = (...prune: string[]) => pruneStage(Recipe.parse({ from: { tar: 'a' }, prune }))

/** Runs the stage over these layers; what the tree holds afterwards, and what the stage was given. */
async function prune(patterns: readonly string[], ...fill: ((root: string) => Promise<unknown>)[]) {
  const dir = await temporaryDir()
  const [mountPoint, upper, work, scratch] = ['root', 'upper', 'work', 'scratch'].map(name => join(dir, name)) as [
    string,
    string,
    string,
    string,
  ]
  for (const path of [mountPoint, upper, work, scratch]) await mkdir(path)
  const layers: StackedLayer[] = []
  for (const [at, one] of fill.entries()) {
    const root = join(dir, 'layers', String(at), 'root')
    await mkdir(root, { recursive: true })
    await one(root)
    layers.push(await layerOf(root))
  }
  const overlay = { layers: layers.map(layer => layer.root), upper, work, mountPoint }
  await stageFor(...patterns)?.make({ lower: layers, tree: mergeLayers(layers), overlay, upper, scratch, sandbox: {} })
  const after = mergeLayers([...layers, await layerOf(upper)])
  return { left: after.entries.map(entry => entry.path).filter(path => path !== ''), layers, mountPoint }
}

const files =
  (some: Files) =>
  (root: string): Promise<void> =>
    writeFiles(root, some)

describe('the stage', () => {
  test('is none where the recipe asks for nothing', () => {
    expect(stageFor()).toBeUndefined()
  })

  test('depends on what is asked for', () => {
    expect(stageFor('/a')?.title).toBe('prune')
    expect(stageFor('/a')?.inputs).toEqual(stageFor('/a')?.inputs)
    expect(stageFor('/a')?.inputs).not.toEqual(stageFor('/b')?.inputs)
    expect(stageFor('locales')?.inputs).not.toEqual(stageFor('caches')?.inputs)
  })

  test('takes things out of the tree and leaves the layers below as they are', async () => {
    const { left, layers, mountPoint } = await prune(
      ['/usr/b', '/opt/*', '/usr/e'],
      files({ 'usr/a': '1', 'usr/b/c': '2', 'opt/x': '3' }),
      files({ 'usr/b/d': '4', 'usr/e': '5' }),
    )
    expect(left).toEqual(['opt', 'usr', 'usr/a'])
    expect((await readdir(join(layers[0]?.root ?? '', 'usr'))).sort()).toEqual(['a', 'b'])
    expect(await readdir(mountPoint)).toEqual([])
  })

  test('whatever the names are', async () => {
    const odd = ['-rf', 'a b', 'new\nline', '*', '"quoted"', "it's", '$HOME', 'ü']
    const { left } = await prune(
      ['/odd/*'],
      files({ keep: '', ...Object.fromEntries(odd.map(name => [`odd/${name}`, ''])) }),
    )
    expect(left).toEqual(['keep', 'odd'])
  })

  test('of a link it takes the link, not where it leads', async () => {
    const outside = await directoryOf({ precious: 'data' })
    const { left } = await prune(['/link', '/link/*', '/b', '/b/*'], async root => {
      await writeFiles(root, { 'a/file': '' })
      await symlink('/a', join(root, 'b'))
      await symlink(outside, join(root, 'link'))
    })
    expect(left).toEqual(['a', 'a/file'])
    expect(await readdir(outside)).toEqual(['precious'])
  })

  test('changes nothing where nothing matches', async () => {
    expect((await prune(['/opt/*'], files({ 'usr/a': '1' }))).left).toEqual(['usr', 'usr/a'])
  })
})
