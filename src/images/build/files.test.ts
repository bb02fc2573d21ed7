import { chmod, chown, lstat, mkdir, readFile, readlink, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { describe, expect, test } from 'vitest'
import type { Plain } from '../../site/paths.ts'
import { Recipe } from '../../site/recipe.ts'
import { type Files, directoryOf, failureOf, temporaryDir, writeFiles } from '../../site/testing.ts'
import { type StackedLayer, mergeLayers } from '../layers/merge.ts'
import { scanLayer } from '../layers/scan.ts'
import { filesStage } from './files.ts'

const IMAGE: Files = {
  'etc/passwd': 'root:x:0:0:root:/root:/bin/sh\nada:x:1000:1001:Ada:/home/ada:/bin/sh\nbroken\nodd:x:zero:0::/:\n',
  'etc/group': 'root:x:0:\nhpc:x:900:ada\n',
  'etc/motd': 'old\n',
  'usr/lib/x': '',
}

async function layerOf(root: string): Promise<StackedLayer> {
  return { root, ...(await scanLayer(root, 1_700_000_000)) }
}

const stageOf = (dir: string, files: object, context: Plain = {}) =>
  filesStage(dir, Recipe.parse({ from: { tar: 'a' }, files }), context)

interface Placed {
  readonly files?: object
  readonly context?: Plain
  /** Beside the recipe. */
  readonly beside?: Files
  readonly prepare?: (recipe: string, image: string) => Promise<unknown>
}

/** Puts the files into a root; resolves with where the layer and the root are. */
async function place({ files = {}, context = {}, beside = {}, prepare }: Placed) {
  const dir = await temporaryDir()
  const [recipe, image, upper] = ['recipe', 'image', 'upper'].map(name => join(dir, name)) as [string, string, string]
  for (const path of [recipe, image, upper]) await mkdir(path)
  await writeFiles(recipe, beside)
  await writeFiles(image, IMAGE)
  await prepare?.(recipe, image)
  const lower = [await layerOf(image)]
  const stage = await stageOf(recipe, files, context)
  await stage?.make({
    lower,
    tree: mergeLayers(lower),
    overlay: { layers: [image], mountPoint: '/nowhere' },
    upper,
    scratch: '/nowhere',
    sandbox: {},
  })
  const layer = await layerOf(upper)
  return {
    /** What the layer holds: path, mode, owner. */
    layer: layer.entries
      .filter(({ path }) => path !== '')
      .map(({ path, mode, uid, gid }) => `${path} ${mode.toString(8)} ${uid}:${gid}`),
    read: (path: string) => readFile(join(upper, path), 'utf8'),
    upper,
  }
}

test('a recipe without files has no such stage', async () => {
  expect(await stageOf(await temporaryDir(), {})).toBeUndefined()
})

describe('a file', () => {
  test('is root’s and readable unless said otherwise', async () => {
    const placed = await place({ files: { '/etc/motd': 'motd' }, beside: { motd: 'welcome\n' } })
    expect(placed.layer).toEqual(['etc 755 0:0', 'etc/motd 644 0:0'])
    expect(await placed.read('etc/motd')).toBe('welcome\n')
  })

  test('is executable where it is so beside the recipe', async () => {
    const placed = await place({
      files: { '/usr/bin/tool': 'tool' },
      beside: { tool: '#!/bin/sh\n' },
      prepare: recipe => chmod(join(recipe, 'tool'), 0o700),
    })
    expect(placed.layer).toContain('usr/bin/tool 755 0:0')
  })

  test('has the owner, the group and the mode it is given, by the names the image knows', async () => {
    const placed = await place({
      files: { '/opt/tool': { source: 'tool', owner: 'ada', group: 'hpc', mode: '4750' } },
      beside: { tool: 'x' },
    })
    expect(placed.layer).toEqual(['opt 755 0:0', 'opt/tool 4750 1000:900'])
  })

  test('looks the same whoever builds, with whatever umask', async () => {
    const umask = process.umask(0o077)
    try {
      const placed = await place({
        files: { '/opt/new/a': 'a' },
        beside: { a: 'x' },
        prepare: recipe => chown(join(recipe, 'a'), 1234, 1234),
      })
      expect(placed.layer).toEqual(['opt 755 0:0', 'opt/new 755 0:0', 'opt/new/a 644 0:0'])
    } finally {
      process.umask(umask)
    }
  })

  test('is copied byte for byte when it is no template', async () => {
    const bytes = Buffer.from([0, 255, 0x7b, 0x7b, 10, 13])
    const placed = await place({ files: { '/opt/a.j2.bin': 'a' }, beside: { a: bytes } })
    expect(await readFile(join(placed.upper, 'opt/a.j2.bin'))).toEqual(bytes)
  })

  test('leaves the directories of the image as they are', async () => {
    const placed = await place({
      files: { '/srv/data/a': 'a' },
      beside: { a: '' },
      prepare: async (_, image) => {
        await mkdir(join(image, 'srv/data'), { recursive: true })
        await chown(join(image, 'srv/data'), 1000, 900)
        await chmod(join(image, 'srv/data'), 0o2770)
      },
    })
    expect(placed.layer).toEqual(['srv 755 0:0', 'srv/data 2770 1000:900', 'srv/data/a 644 0:0'])
  })

  test('lies where the links of the image lead', async () => {
    const placed = await place({
      files: { '/lib/a': 'a', '/outside/b': 'a' },
      beside: { a: '' },
      prepare: async (_, image) => {
        await symlink('usr/lib', join(image, 'lib'))
        await symlink('../../../../../../usr/lib', join(image, 'outside'))
      },
    })
    expect(placed.layer).toEqual(['usr 755 0:0', 'usr/lib 755 0:0', 'usr/lib/a 644 0:0', 'usr/lib/b 644 0:0'])
  })

  test('takes the place of a link, not of what it leads to', async () => {
    const placed = await place({
      files: { '/etc/resolv.conf': 'a' },
      beside: { a: 'mine' },
      prepare: (_, image) => symlink('/usr/lib/x', join(image, 'etc/resolv.conf')),
    })
    expect(placed.layer).toEqual(['etc 755 0:0', 'etc/resolv.conf 644 0:0'])
  })

  test('a later one of the same place is the one that counts', async () => {
    const placed = await place({ files: { '/opt': 'tree', '/opt/a': 'other' }, beside: { 'tree/a': '1', other: '2' } })
    expect(await placed.read('opt/a')).toBe('2')
  })
})

describe('a folder', () => {
  const TREE: Files = { 'tree/a': '1', 'tree/sub/b': '2', 'tree/sub/.hidden': '3', 'tree/conf.j2': 'x={{ vars.x }}\n' }

  test('brings everything in it, templates without their ending', async () => {
    const placed = await place({ files: { '/opt/tree': 'tree' }, beside: TREE, context: { vars: { x: 7 } } })
    expect(placed.layer).toEqual([
      'opt 755 0:0',
      'opt/tree 755 0:0',
      'opt/tree/a 644 0:0',
      'opt/tree/conf 644 0:0',
      'opt/tree/sub 755 0:0',
      'opt/tree/sub/.hidden 644 0:0',
      'opt/tree/sub/b 644 0:0',
    ])
    expect(await placed.read('opt/tree/conf')).toBe('x=7\n')
  })

  test('gives its owner and mode to what is new, not to directories that were there', async () => {
    const placed = await place({
      files: { '/usr': { source: 'tree', owner: 'ada', group: 'hpc', mode: '0600' } },
      beside: { 'tree/lib/a': '', 'tree/new/b': '' },
    })
    expect(placed.layer).toEqual([
      'usr 755 0:0',
      'usr/lib 755 0:0',
      'usr/lib/a 600 1000:900',
      'usr/new 755 1000:900',
      'usr/new/b 600 1000:900',
    ])
  })

  test('brings empty folders, and links as links', async () => {
    const placed = await place({
      files: { '/opt': { source: 'tree', owner: 'ada' } },
      beside: { 'tree/a': '' },
      prepare: async recipe => {
        await mkdir(join(recipe, 'tree/empty'))
        await symlink('/etc/shadow', join(recipe, 'tree/link'))
        await symlink('nowhere', join(recipe, 'tree/dangling'))
      },
    })
    expect(placed.layer).toEqual([
      'opt 755 1000:0',
      'opt/a 644 1000:0',
      'opt/dangling 777 1000:0',
      'opt/empty 755 1000:0',
      'opt/link 777 1000:0',
    ])
    expect(await readlink(join(placed.upper, 'opt/link'))).toBe('/etc/shadow')
    expect((await lstat(join(placed.upper, 'opt/dangling'))).isSymbolicLink()).toBe(true)
  })

  test('lies where the links of the image lead, at any depth', async () => {
    const placed = await place({
      files: { '/usr': 'tree' },
      beside: { 'tree/lib64/a': '' },
      prepare: (_, image) => symlink('lib', join(image, 'usr/lib64')),
    })
    expect(placed.layer).toEqual(['usr 755 0:0', 'usr/lib 755 0:0', 'usr/lib/a 644 0:0'])
  })
})

describe('links the recipe places itself', () => {
  test('are followed inside the image', async () => {
    const placed = await place({
      files: { '/opt': 'tree', '/opt/out/x': 'y', '/opt/lib/z': 'y' },
      beside: { y: 'mine', 'tree/a': '' },
      prepare: async recipe => {
        await symlink('/srv/deep', join(recipe, 'tree/out'))
        await symlink('../usr/lib', join(recipe, 'tree/lib'))
      },
    })
    expect(await placed.read('srv/deep/x')).toBe('mine')
    expect(placed.layer).toContain('usr/lib/z 644 0:0')
  })

  test('never on this machine', async () => {
    const outside = await directoryOf({ x: 'precious' })
    const placed = place({
      files: { '/opt': 'tree', '/opt/out/x': 'y' },
      beside: { y: 'mine', 'tree/a': '' },
      prepare: recipe => symlink(outside, join(recipe, 'tree/out')),
    })
    // It is refused where images keep nothing, such as below /tmp.
    await failureOf(() => placed)
    expect(await readFile(join(outside, 'x'), 'utf8')).toBe('precious')
  })
})

const rendered = async (text: string, context: Plain): Promise<string> =>
  (await place({ files: { '/etc/conf': 'conf.j2' }, beside: { 'conf.j2': text }, context })).read('etc/conf')

describe('a template', () => {
  test.each<readonly [string, string, string]>([
    ['lines', 'Name={{ name }}\nNodes={{ vars.nodes }}\n', 'Name=compute\nNodes=4\n'],
    ['without a newline at its end', 'a={{ vars.nodes }}', 'a=4'],
    ['a loop', '{% for x in vars.list %}{{ x }};{% endfor %}\n', 'a;b;\n'],
    ['one value alone', '{{ vars.nodes }}\n', '4\n'],
    ['nothing to fill in', 'plain\n', 'plain\n'],
    ['nothing at all', '', ''],
    ['blank lines at its end', 'a\n\n', 'a\n\n'],
    ['blank lines around one value', '\n{{ vars.nodes }}\n\n', '\n4\n\n'],
    ['a map alone', '{{ vars.map }}\n', '{"k": 1}\n'],
    ['a list alone', '{{ vars.list }}\n', '["a", "b"]\n'],
  ])('%s', async (_, text, result) => {
    expect(await rendered(text, { name: 'compute', vars: { nodes: 4, list: ['a', 'b'], map: { k: 1 } } })).toBe(result)
  })

  test('keeps its mode', async () => {
    const placed = await place({
      files: { '/etc/run': 'run.j2' },
      beside: { 'run.j2': '#!/bin/sh\n' },
      prepare: recipe => chmod(join(recipe, 'run.j2'), 0o755),
    })
    expect(placed.layer).toContain('etc/run 755 0:0')
  })

  test.each<readonly [string, string, string]>([
    ['a name nobody defined', 'a={{ vars.zzz }}\n', 'vars.zzz is not defined'],
    ['one that does not read', '{% if %}\n', 'syntax error: '],
  ])('%s is told with the file', async (_, text, why) => {
    expect(await failureOf(() => rendered(text, { vars: {} }))).toContain(`TEMPLATE_INVALID: recipe/conf.j2: ${why}`)
  })
})

/** Links that lead out, one of them to a folder whose name only begins the same. */
const linksOut = async (recipe: string): Promise<void> => {
  await symlink('/etc', join(recipe, 'out'))
  await symlink('/etc/passwd', join(recipe, 'file'))
  await symlink('../recipe-2', join(recipe, 'beside'))
  await mkdir(`${recipe}-2`)
}

/** In an image in which /usr/run leads to /run. */
const refused = (files: object, beside: Files): Promise<string> =>
  failureOf(() => place({ files, beside, prepare: (_, image) => symlink('../run', join(image, 'usr/run')) }))

describe('refused', () => {
  test('what is not there', async () => {
    expect(await failureOf(() => place({ files: { '/a': 'sub/none' } }))).toBe(
      'RECIPE_INVALID: files: there is no sub/none beside the recipe',
    )
  })

  test('what a link leads out of the folder of the recipe', async () => {
    for (const source of ['out', 'file', 'out/passwd', 'beside'])
      expect(await failureOf(() => place({ files: { '/a': source }, prepare: linksOut }))).toBe(
        `RECIPE_INVALID: files: ${source} leads out of the folder of the recipe`,
      )
  })

  test.each<readonly [string, object, string]>([
    ['a user', { owner: 'bob' }, 'the image has no user bob'],
    ['a group', { group: 'staff' }, 'the image has no group staff'],
    ['a user without a number', { owner: 'odd' }, 'the image has no user odd'],
  ])('%s the image does not know', async (_, settings, why) => {
    expect(await failureOf(() => place({ files: { '/opt/a': { source: 'a', ...settings } }, beside: { a: '' } }))).toBe(
      `RECIPE_INVALID: files: /opt/a: ${why}`,
    )
  })

  test('what a folder or a link of the image brings to a place that every image is cleaned of', async () => {
    expect(await refused({ '/etc/ssh': 'ssh' }, { 'ssh/ssh_host_rsa_key': 'x' })).toBe(
      "RECIPE_INVALID: files: /etc/ssh/ssh_host_rsa_key: is taken out of every image: it is a secret, or must be each machine's own",
    )
    expect(await refused({ '/usr/run/a': 'a' }, { a: '' })).toBe(
      'RECIPE_INVALID: files: /usr/run/a: is taken out of every image, as all logs, caches, locks and temporary files are',
    )
    expect(await refused({ '/etc/machine-id': 'a' }, { a: 'abc' })).toBe(
      'RECIPE_INVALID: files: /etc/machine-id: is emptied in every image',
    )
    expect(await refused({ '/etc/machine-id': 'a', '/etc/ssh/sshd_config': 'a' }, { a: '' })).toBe('no failure')
  })

  test('root is known even where the image says nothing of users', async () => {
    const placed = await place({
      files: { '/a': 'a' },
      beside: { a: '' },
      prepare: (_, image) => writeFile(join(image, 'etc/passwd'), ''),
    })
    expect(placed.layer).toEqual(['a 644 0:0'])
  })
})

describe('what the stage depends on', () => {
  const BESIDE: Files = { plain: 'a', 'conf.j2': '{{ vars.x }}', 'tree/deep/a.j2': 'x={{ vars.x }}', 'bare/b': 'x' }

  test.each<readonly [string, object, boolean]>([
    ['a plain file', { '/a': 'plain' }, false],
    ['a template', { '/a': 'plain', '/b': 'conf.j2' }, true],
    ['a folder with one somewhere', { '/a': 'tree' }, true],
    ['a folder with none', { '/a': 'bare' }, false],
  ])('the site’s values only with templates: %s', async (_, files, isTemplated) => {
    const dir = await directoryOf(BESIDE)
    const [one, other] = [await stageOf(dir, files, { vars: { x: 1 } }), await stageOf(dir, files, { vars: { x: 2 } })]
    expect(one?.isTemplated).toBe(isTemplated)
    expect(isDeepStrictEqual(one?.inputs, other?.inputs)).toBe(!isTemplated)
  })

  test('the text that templates become, not values they do not use', async () => {
    const dir = await directoryOf(BESIDE)
    const files = { '/a': 'conf.j2', '/b': 'tree' }
    const one = await stageOf(dir, files, { vars: { x: 1, y: 1 } })
    expect(await stageOf(dir, files, { vars: { x: 1, y: 2 } })).toMatchObject({ inputs: one?.inputs })
    await writeFile(join(dir, 'conf.j2'), '{# A comment. #}{{ vars.x }}')
    expect(await stageOf(dir, files, { vars: { x: 1, y: 2 } })).toMatchObject({ inputs: one?.inputs })
  })

  test.each<readonly [string, object, (dir: string) => Promise<unknown>]>([
    ['the content of a file', { '/a': 'plain' }, dir => writeFile(join(dir, 'plain'), 'b')],
    ['whether it is executable', { '/a': 'plain' }, dir => chmod(join(dir, 'plain'), 0o755)],
    ['a file more in a folder', { '/a': 'bare' }, dir => writeFile(join(dir, 'bare/c'), '')],
  ])('%s', async (_, files, change) => {
    const dir = await directoryOf(BESIDE)
    const before = await stageOf(dir, files)
    await change(dir)
    expect((await stageOf(dir, files))?.inputs).not.toEqual(before?.inputs)
  })

  test('targets, owners and modes', async () => {
    const dir = await directoryOf(BESIDE)
    const inputs = await Promise.all(
      [{ '/a': 'plain' }, { '/b': 'plain' }, { '/a': { source: 'plain', mode: '0600' } }].map(async files =>
        JSON.stringify((await stageOf(dir, files))?.inputs),
      ),
    )
    expect(new Set(inputs).size).toBe(3)
  })
})
