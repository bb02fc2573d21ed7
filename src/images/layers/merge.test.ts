import { createHash } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { exec } from '../../lib/exec.ts'
import { type Entry, comparePaths } from '../../lib/tree/entry.ts'
import { temporaryDir } from '../../site/testing.ts'
import { type MergedTree, type StackedLayer, mergeLayers } from './merge.ts'
import { scanLayer } from './scan.ts'

const shaOf = (content: string): string => createHash('sha256').update(content).digest('hex')

/** What a layer says, in short: a text is a file, null a directory, → a link; `-` takes away, `!` hides what lies below. */
type Items = Readonly<Record<string, string | null>>

function layer(number: number, items: Items): StackedLayer {
  const names = Object.keys(items)
  const entries = ['', ...names.filter(name => !/^[-!]/.test(name))].sort(comparePaths).map((path): Entry => {
    const common = { path, mode: number, uid: 0, gid: 0, mtime: number }
    const item = items[path] ?? null
    if (item === null) return { ...common, type: 'directory' }
    if (item.startsWith('→')) return { ...common, type: 'symlink', target: item.slice(1) }
    const [content = '', linkTo] = item.split('@')
    return { ...common, type: 'file', size: content.length, sha256: shaOf(content), ...(linkTo && { linkTo }) }
  })
  const marked = (mark: string): string[] => names.filter(name => name.startsWith(mark)).map(name => name.slice(1))
  return { root: `/layers/${number}`, entries, gone: marked('-'), opaque: marked('!') }
}

const merge = (...layers: Items[]): MergedTree => mergeLayers(layers.map((items, at) => layer(at, items)))

/** path → number of the layer it comes from */
const shown = (tree: MergedTree): string =>
  tree.entries.map(({ path, mtime }) => `${path === '' ? '/' : path}:${mtime}`).join(' ')

describe('layers become one tree', () => {
  test.each<readonly [string, readonly Items[], string]>([
    ['one is itself', [{ a: null, 'a/b': 'x' }], '/:0 a:0 a/b:0'],
    [
      'directories join',
      [
        { a: null, 'a/1': 'x' },
        { a: null, 'a/2': 'x' },
      ],
      '/:1 a:1 a/1:0 a/2:1',
    ],
    ['a file takes the place of a file', [{ a: 'x', b: 'x' }, { a: 'y' }], '/:1 a:1 b:0'],
    [
      'what is taken away is gone, with all in it',
      [
        { a: null, 'a/b': 'x', c: 'x' },
        { '-a': null, '-c': null },
      ],
      '/:1',
    ],
    ['and may come back', [{ a: 'x' }, { '-a': null }, { a: 'y' }], '/:2 a:2'],
    ['what is taken away and was never there', [{ a: 'x' }, { '-b': null, '-c/d': null }], '/:1 a:0'],
    [
      'a new directory instead of an old one',
      [
        { d: null, 'd/1': 'x', 'd/s': null, 'd/s/2': 'x' },
        { d: null, '!d': null, 'd/3': 'x' },
      ],
      '/:1 d:1 d/3:1',
    ],
    [
      'and what a third adds to it',
      [
        { d: null, 'd/1': 'x' },
        { d: null, '!d': null, 'd/3': 'x' },
        { d: null, 'd/4': 'x' },
      ],
      '/:2 d:2 d/3:1 d/4:2',
    ],
    ['a file instead of a directory', [{ d: null, 'd/1': 'x' }, { d: 'file' }], '/:1 d:1'],
    ['a link instead of a directory', [{ d: null, 'd/1': 'x' }, { d: '→e' }], '/:1 d:1'],
    ['a directory instead of a file', [{ d: 'file' }, { d: null, 'd/1': 'x' }], '/:1 d:1 d/1:1'],
    [
      'a directory, a file, a directory',
      [{ d: null, 'd/1': 'x' }, { d: 'file' }, { d: null, 'd/2': 'x' }],
      '/:2 d:2 d/2:2',
    ],
    [
      'a directory, nothing, a directory',
      [{ d: null, 'd/1': 'x' }, { '-d': null }, { d: null, 'd/2': 'x' }],
      '/:2 d:2 d/2:2',
    ],
    [
      'names in byte order, what is in a directory at once',
      [
        { b: 'x', 'a.b': 'x' },
        { a: null, 'a/z': 'x', B: 'x' },
      ],
      '/:1 B:1 a:1 a/z:1 a.b:0 b:0',
    ],
  ])('%s', (_, layers, expected) => {
    expect(shown(merge(...layers))).toBe(expected)
  })

  test('no layers are nothing', () => {
    const tree = mergeLayers([])
    expect(tree.entries).toEqual([])
    expect([tree.get(''), tree.get('a')]).toEqual([undefined, undefined])
  })

  test('an entry by its path', () => {
    const tree = merge({ a: null, 'a/b': 'x' }, { 'a/b': 'yy', a: null })
    expect(tree.get('a/b')).toMatchObject({ type: 'file', size: 2 })
    expect(tree.get('')).toMatchObject({ type: 'directory', mtime: 1 })
    expect([tree.get('a/c'), tree.get('b'), tree.get('a/b/c'), tree.get('/a')]).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ])
  })

  test('names that JavaScript has plans for are names', () => {
    const tree = merge({ ['__proto__']: null, '__proto__/constructor': 'x' }, { toString: 'x' })
    expect(shown(tree)).toBe('/:1 __proto__:0 __proto__/constructor:0 toString:1')
    expect(tree.get('hasOwnProperty')).toBeUndefined()
  })

  test('where the content of a file lies', () => {
    const tree = merge({ a: null, 'a/b': 'x', c: 'x' }, { a: null, 'a/b': 'y' })
    const located = tree.entries.flatMap(entry => (entry.type === 'file' ? [tree.locate(entry)] : []))
    expect(located).toEqual(['/layers/1/a/b', '/layers/0/c'])
  })

  test('a layer is not changed by those above it', () => {
    const below = layer(0, { a: 'x', b: 'x@a' })
    const before = structuredClone(below)
    mergeLayers([below, layer(1, { '-a': null, b: 'y' })])
    expect(below).toEqual(before)
  })
})

const links = (tree: MergedTree): string =>
  tree.entries.flatMap(entry => (entry.type === 'file' ? [`${entry.path}→${entry.linkTo ?? ''}`] : [])).join(' ')

describe('several names of one file', () => {
  test.each<readonly [string, readonly Items[], string]>([
    ['stay so', [{ a: 'x', b: 'x@a', c: 'x@a' }], 'a→ b→a c→a'],
    ['the first that is left is the file', [{ a: 'x', b: 'x@a', c: 'x@a' }, { '-a': null }], 'b→ c→b'],
    ['also when another file has its name now', [{ a: 'x', b: 'x@a', c: 'x@a' }, { a: 'y' }], 'a→ b→ c→b'],
    ['the only one left links to nothing', [{ a: 'x', b: 'x@a' }, { '-a': null }], 'b→'],
    [
      'names in two layers are two files',
      [
        { a: 'x', b: 'x@a' },
        { b: 'x', c: 'x@b' },
      ],
      'a→ b→ c→b',
    ],
    [
      'with the same names in both',
      [
        { a: 'x', b: 'x@a' },
        { a: 'x', b: 'x@a' },
      ],
      'a→ b→a',
    ],
    ['one of them changed', [{ a: 'x', b: 'x@a', c: 'x@a' }, { b: 'y' }], 'a→ b→ c→a'],
  ])('%s', (_, layers, expected) => {
    const tree = merge(...layers)
    expect(links(tree)).toBe(expected)
    expect(tree.entries.map(({ path }) => tree.get(path))).toEqual(tree.entries)
  })
})

describe('where a path leads', () => {
  const tree = merge({
    usr: null,
    'usr/lib': null,
    'usr/lib/x': 'x',
    'usr/lib64': '→lib',
    lib: '→usr/lib',
    lib64: '→/usr/lib64',
    etc: null,
    'etc/os-release': '→../usr/lib/os-release',
    'etc/mtab': '→/proc/self/mounts',
    up: '→../../../../etc',
    'usr/up': '→../etc',
    dots: '→./usr/./lib/..',
    empty: '→',
    loop: '→loop',
    a: '→b',
    b: '→a',
    slash: '→usr//lib/',
    file: '→usr/lib/x',
  })

  test.each([
    ['', ''],
    ['/', ''],
    ['usr/lib/x', 'usr/lib/x'],
    ['/usr/lib/x', 'usr/lib/x'],
    ['//usr///lib/', 'usr/lib'],
    ['lib/x', 'usr/lib/x'],
    ['lib64/x', 'usr/lib/x'],
    ['usr/lib64', 'usr/lib'],
    ['lib/new/deep', 'usr/lib/new/deep'],
    ['nowhere/at/all', 'nowhere/at/all'],
    ['etc/os-release', 'usr/lib/os-release'],
    ['etc/mtab', 'proc/self/mounts'],
    ['up', 'etc'],
    ['up/motd', 'etc/motd'],
    ['usr/up/motd', 'etc/motd'],
    ['dots', 'usr'],
    ['slash/x', 'usr/lib/x'],
    ['file', 'usr/lib/x'],
    ['../../etc/passwd', 'etc/passwd'],
    ['usr/../../..', ''],
    ['usr/./lib/../lib', 'usr/lib'],
    ['lib/..', 'usr'],
  ])('%s → %s', (path, to) => {
    expect(tree.resolve(path)).toBe(to)
  })

  test.each(['loop', 'loop/x', 'a', 'b/c', 'empty'])('%s ends, and inside the tree', path => {
    expect(tree.resolve(path)).toMatch(/^(?!\/)(?!.*\.\.)/)
  })

  test('as the kernel has it', async () => {
    const root = await temporaryDir()
    for (const entry of tree.entries) {
      if (entry.path === '') continue
      if (entry.type === 'directory') await mkdir(join(root, entry.path))
      else if (entry.type === 'symlink' && entry.target !== '')
        await exec('ln', ['-s', entry.target, join(root, entry.path)])
      else if (entry.type === 'file') await writeFile(join(root, entry.path), 'x')
    }
    await mkdir(join(root, 'bin'))
    await exec('cp', ['/usr/bin/busybox', join(root, 'bin/busybox')])
    const there = [
      'usr/lib/x',
      'lib/x',
      'lib64/x',
      'usr/lib64',
      'up',
      'usr/up',
      'dots',
      'slash/x',
      'file',
      'lib/..',
      'usr/../../..',
      'lib64',
    ]
    const { stdout } = await exec('chroot', [root, '/bin/busybox', 'realpath', ...there.map(path => `/${path}`)])
    expect(there.map(path => `/${tree.resolve(path)}`)).toEqual(stdout.toString('utf8').trimEnd().split('\n'))
  })
})

/**
 * Layers as builds make them: each by working in an overlay mounted over those below it. Names are few, so that things
 * meet, and what cannot be done is passed over.
 */
const name = fc.constantFrom('a', 'b', 'c')
const path = fc.array(name, { minLength: 1, maxLength: 3 }).map(parts => parts.join('/'))
const action = fc.oneof(
  { weight: 4, arbitrary: fc.tuple(path, fc.nat(9)).map(([p, n]) => `mkdir -p "$(dirname ${p})" && echo ${n} > ${p}`) },
  { weight: 3, arbitrary: path.map(p => `mkdir -p ${p}`) },
  { weight: 3, arbitrary: path.map(p => `rm -rf ${p}`) },
  { weight: 2, arbitrary: path.map(p => `rm -rf ${p}; mkdir -p ${p}; echo new > ${p}/c`) },
  {
    weight: 2,
    arbitrary: fc.tuple(path, fc.nat(9)).map(([p, n]) => `rm -rf ${p}; mkdir -p "$(dirname ${p})"; echo ${n} > ${p}`),
  },
  { weight: 4, arbitrary: fc.tuple(path, path).map(([p, q]) => `ln ${p} ${q}`) },
  { weight: 2, arbitrary: fc.tuple(path, path).map(([p, q]) => `ln -s ${p} ${q}`) },
  { weight: 2, arbitrary: fc.tuple(path, path).map(([p, q]) => `mv -T ${p} ${q}`) },
  { weight: 1, arbitrary: fc.tuple(path, fc.constantFrom('700', '4711')).map(([p, mode]) => `chmod ${mode} ${p}`) },
  { weight: 1, arbitrary: path.map(p => `chown -h 12:34 ${p}`) },
  { weight: 1, arbitrary: path.map(p => `touch -h -d @1000 ${p}`) },
  { weight: 1, arbitrary: path.map(p => `mknod ${p} c 1 3`) },
)
const stack = fc.array(fc.array(action, { minLength: 1, maxLength: 8 }), { minLength: 2, maxLength: 5 })

const OPTIONS = 'redirect_dir=off,metacopy=off,index=off,xino=off'
const FIELDS = ['%P', '%y', '%m', '%U', '%G', '%T@', '%s', '%i', '%l']

const act = (actions: readonly string[]): string => actions.map(one => `{ ${one}; } 2>/dev/null || :`).join('\n')
const below = (at: number): string => Array.from({ length: at }, (_, under) => `layers/${at - 1 - under}`).join(':')

/** Makes the layers, then lists what a mount of them all shows; nothing of this is seen outside. */
function scriptOf(layers: readonly (readonly string[])[]): string {
  const made = layers.map((actions, at) =>
    at === 0
      ? `cd layers/0\n${act(actions)}\ncd "$1"`
      : `mount -t overlay -o lowerdir=${below(at)},upperdir=layers/${at},workdir=work/${at},volatile,${OPTIONS} muster root
cd root\n${act(actions)}\ncd "$1"\numount root`,
  )
  return `cd "$1"
${made.join('\n')}
mount -t overlay -o lowerdir=${below(layers.length)},${OPTIONS} muster root
cd root
find . -printf '${FIELDS.join('\\0')}\\0' > ../list
find . -type f -exec sha256sum --zero {} + > ../sums`
}

/** The same entries a merged tree would have, from what find and sha256sum printed. */
function entriesFrom(list: string, sums: string): Entry[] {
  const digests = new Map(sums.split('\0').map(line => [line.slice(66).replace('./', ''), line.slice(0, 64)]))
  const values = list.split('\0').slice(0, -1)
  const rows = Array.from({ length: values.length / FIELDS.length }, (_, at) =>
    values.slice(at * FIELDS.length, (at + 1) * FIELDS.length),
  ).sort(([a = ''], [b = '']) => comparePaths(a, b))
  const firstNames = new Map<string, string>()
  return rows.map(([path = '', kind = '', mode = '', uid, gid, time, size, inode = '', target = '']): Entry => {
    const common = {
      path,
      mode: Number.parseInt(mode, 8),
      uid: Number(uid),
      gid: Number(gid),
      mtime: Math.floor(Number(time)),
    }
    if (kind === 'd') return { ...common, type: 'directory' }
    if (kind === 'l') return { ...common, type: 'symlink', target }
    if (kind === 'c') return { ...common, type: 'char', major: 1, minor: 3 }
    const linkTo = firstNames.get(inode)
    firstNames.set(inode, linkTo ?? path)
    return { ...common, type: 'file', size: Number(size), sha256: digests.get(path) ?? '', ...(linkTo && { linkTo }) }
  })
}

const LATER = 4_000_000_000

/** What a mount of such layers shows, what is worked out of them, and the content of every file where it is located. */
async function bothViews(layers: readonly (readonly string[])[]) {
  const dir = await temporaryDir()
  for (const [at] of layers.entries())
    for (const folder of ['layers', 'work']) await mkdir(join(dir, folder, String(at)), { recursive: true })
  await mkdir(join(dir, 'root'))
  await exec('unshare', ['--mount', '--propagation', 'private', 'sh', '-euc', scriptOf(layers), 'sh', dir])
  const roots = layers.map((_, at) => join(dir, 'layers', String(at)))
  const tree = mergeLayers(await Promise.all(roots.map(async root => ({ root, ...(await scanLayer(root, LATER)) }))))
  const files = tree.entries.filter(entry => entry.type === 'file')
  return {
    mounted: entriesFrom(await readFile(join(dir, 'list'), 'utf8'), await readFile(join(dir, 'sums'), 'utf8')),
    merged: tree.entries,
    located: await Promise.all(files.map(async file => shaOf(await readFile(tree.locate(file), 'utf8')))),
    digests: files.map(file => file.sha256),
  }
}

describe('what overlayfs shows is what is worked out without it', () => {
  test.each<readonly [string, readonly (readonly string[])[], number]>([
    ['whiteouts', [['echo 1 > a', 'mkdir b', 'echo 2 > b/c'], ['rm a', 'rm b/c'], ['echo 3 > b/a']], 3],
    [
      'opaque directories',
      [['mkdir -p a/b', 'echo 1 > a/b/c', 'echo 1 > a/c'], ['rm -r a', 'mkdir a', 'echo 2 > a/a'], ['mkdir a/b']],
      4,
    ],
    [
      'a file and a directory, and back',
      [
        ['mkdir a', 'echo 1 > a/b', 'echo 1 > b'],
        ['rm -r a', 'echo 2 > a', 'rm b', 'mkdir b', 'echo 2 > b/c'],
        ['rm a', 'mkdir a', 'echo 3 > a/c', 'rm -r b', 'echo 3 > b'],
      ],
      4,
    ],
    ['names of one file in two layers', [['echo 1 > a', 'ln a b', 'ln a c'], ['echo 2 > b'], ['rm a', 'ln b a']], 4],
    ['a name more for a file from below', [['echo 1 > b', 'ln b c'], ['ln b a']], 4],
  ])('%s', async (_, layers, entries) => {
    const { mounted, merged, located, digests } = await bothViews(layers)
    expect(merged).toEqual(mounted)
    expect(located).toEqual(digests)
    expect(merged.length).toBe(entries)
  })

  test('whatever was done', async () => {
    await fc.assert(
      fc.asyncProperty(stack, async layers => {
        const { mounted, merged, located, digests } = await bothViews(layers)
        expect(merged).toEqual(mounted)
        expect(located).toEqual(digests)
      }),
      { numRuns: 40 },
    )
  })
})
