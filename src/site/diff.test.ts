import { describe, expect, test } from 'vitest'
import { type SiteDiff, diffSites } from './diff.ts'
import { valueAt } from './layers.ts'
import type { Plain } from './paths.ts'
import { type Site, nodeNamed } from './site.ts'
import { type Files, siteOf, valueOf } from './testing.ts'

const valuesOf = (site: Site): Map<string, Plain> =>
  new Map([...site.nodes.keys()].map(name => [name, valueOf(site, name)]))

/** Where the new value was written, as a server tells it. */
const locate =
  (site: Site) =>
  (name: string, path: readonly string[]): string | undefined => {
    const root = site.layersOf(nodeNamed(site, name))
    for (let length = path.length; length > 0; length--) {
      const origin = valueAt(root, path.slice(0, length))?.origin
      if (origin !== undefined) return `${origin.layer.file}:${origin.line}`
    }
    return undefined
  }

async function compare(before: Files, after: Files): Promise<SiteDiff> {
  const [old, fresh] = [await siteOf(before), await siteOf(after)]
  return diffSites(valuesOf(old), valuesOf(fresh), locate(fresh))
}

/** One line per change: nodes (how many): path: what, where. */
const lines = ({ changes }: SiteDiff): string[] =>
  changes.map(({ nodes, count, path, summary, at }) =>
    [`${nodes} (${count})`, path, summary, ...(at === undefined ? [] : [`@${at}`])].join(': '),
  )

const between = async (before: Files, after: Files): Promise<string[]> => lines(await compare(before, after))

const addressRule = (base: string): Files => ({
  'nodes.yaml': `n[1-100]: { interfaces: { prov: { address: "{{ '${base}' | ip_add(index) }}" } } }\n`,
})

describe('folding', () => {
  test('nothing changed', async () => {
    expect(await compare({}, {})).toEqual({ added: '', removed: '', changes: [], nodes: 0 })
    expect(await compare({}, { 'nodes.yaml': '# a comment\nn[1-2]:\nn3: {}\n' })).toEqual({
      added: '',
      removed: '',
      changes: [],
      nodes: 0,
    })
  })

  test('one line for a change of many nodes', async () => {
    const nodes = 'n[001-128]: { boot: { root: ram } }\n'
    const diff = await compare({ 'nodes.yaml': nodes }, { 'nodes.yaml': nodes.replace('ram', 'disk') })
    expect(lines(diff)).toEqual(['n[001-128] (128): boot.root: ram → disk: @nodes.yaml:1'])
    expect(diff.nodes).toBe(128)
  })

  test('one line per value, and per way it changes', async () => {
    const before = { 'nodes.yaml': 'n[1-3]: { boot: { root: ram } }\nn3: { boot: { root: disk } }\n' }
    const after = {
      'nodes.yaml': 'n[1-2]: { boot: { root: projected }, domain: x }\nn3: { boot: { root: projected }, domain: x }\n',
    }
    expect(await between(before, after)).toEqual([
      'n[1-2] (2): boot.root: ram → projected: @nodes.yaml:1',
      'n[1-2] (2): domain: + x: @nodes.yaml:1',
      'n3 (1): boot.root: disk → projected: @nodes.yaml:2',
      'n3 (1): domain: + x: @nodes.yaml:2',
    ])
  })

  test('values that differ from node to node, written in one place, make one line', async () => {
    expect(await between(addressRule('10.77.1.0'), addressRule('10.77.2.0'))).toEqual([
      'n[1-100] (100): interfaces.prov.address: 10.77.1.1 → 10.77.2.1, and 99 more like it: @nodes.yaml:1',
    ])
  })

  test.each([
    ['a value', 'n[1-100]: { bmc: { driver: redfish } }\n'],
    ['a map', 'n[1-100]: { domain: x }\n'],
    ['all there was', 'n[1-100]:\n'],
  ])('taken away in one go, they make one line too: %s', async (_, nodes) => {
    const rule = `n[1-100]: { domain: x, bmc: { driver: redfish, address: "{{ '10.78.1.0' | ip_add(index) }}" } }\n`
    const found = await between({ 'nodes.yaml': rule }, { 'nodes.yaml': nodes })
    expect(found.filter(line => line.includes('bmc'))).toHaveLength(1)
  })

  test('without places, changes alike make one line', () => {
    const before = new Map([
      ['n1', { a: 1 }],
      ['n2', { a: 1 }],
      ['n3', { a: 2 }],
    ])
    const after = new Map([...before.keys()].map(name => [name, { a: 3 }]))
    expect(lines(diffSites(before, after))).toEqual(['n[1-2] (2): a: 1 → 3', 'n3 (1): a: 2 → 3'])
  })

  test('a node is counted once, however many of its values change', async () => {
    const diff = await compare({}, { 'nodes.yaml': 'n1: { domain: x, vars: { a: 1, b: 2 } }\nn[2-3]:\n' })
    expect([diff.nodes, diff.changes.length]).toEqual([1, 3])
  })
})

test('added and removed nodes', async () => {
  const diff = await compare({}, { 'nodes.yaml': 'n[2-6]:\nlogin:\n' })
  expect(diff).toEqual({ added: 'login,n[4-6]', removed: 'n1', changes: [], nodes: 5 })
})

test('the first generation: every node is new', async () => {
  expect(diffSites(new Map(), valuesOf(await siteOf()))).toEqual({
    added: 'n[1-3]',
    removed: '',
    changes: [],
    nodes: 3,
  })
})

const one = (before: Plain, after: Plain): string[] =>
  lines(diffSites(new Map([['n1', before]]), new Map([['n1', after]])))

const secret = (text: string): Plain => ({ $secret: text })

describe('how a value changes', () => {
  test.each<[string, Plain, Plain, string[]]>([
    ['text', { a: 'x' }, { a: 'y' }, ['n1 (1): a: x → y']],
    ['a number that becomes text', { a: 1 }, { a: '1' }, ['n1 (1): a: 1 → 1']],
    ['added', {}, { a: 'x' }, ['n1 (1): a: + x']],
    ['taken away', { a: 'x' }, {}, ['n1 (1): a: − x']],
    ['added: each value of a map', {}, { a: { b: 1, c: { d: 2 } } }, ['n1 (1): a.b: + 1', 'n1 (1): a.c.d: + 2']],
    ['taken away: the map', { a: { b: 1, c: { d: 2 } } }, {}, ['n1 (1): a: − {b: 1, c: {d: 2}}']],
    ['a map for a value', { a: 1 }, { a: { b: 2 } }, ['n1 (1): a: 1 → {b: 2}']],
    ['a list longer', { a: ['x'] }, { a: ['x', 'y'] }, ['n1 (1): a: + y']],
    ['a list shorter', { a: ['x', 'y', 'z'] }, { a: ['y'] }, ['n1 (1): a: − x − z']],
    ['a list changed', { a: ['x', 'y'] }, { a: ['y', 'z'] }, ['n1 (1): a: − x + z']],
    ['a list in another order', { a: ['x', 'y'] }, { a: ['y', 'x'] }, ['n1 (1): a: [x, y] → [y, x]']],
    ['an item once more', { a: ['x'] }, { a: ['x', 'x'] }, ['n1 (1): a: [x] → [x, x]']],
    ['a list of maps', { a: [{ b: 1 }] }, { a: [{ b: 2 }] }, ['n1 (1): a: − {b: 1} + {b: 2}']],
    ['a list that was none', { a: 'x' }, { a: ['x'] }, ['n1 (1): a: x → [x]']],
    ['equal, though not the same', { a: { b: ['x'] } }, { a: { b: ['x'] } }, []],
    ['a secret', { k: secret('A') }, { k: secret('B') }, ['n1 (1): k: secret changed']],
    ['a secret that is new', {}, { k: secret('A') }, ['n1 (1): k: + (secret)']],
    ['a secret taken away', { k: secret('A') }, {}, ['n1 (1): k: − (secret)']],
    ['a secret instead of text', { k: 'x' }, { k: secret('A') }, ['n1 (1): k: x → (secret)']],
    ['a secret in a list', { k: [secret('A')] }, { k: [secret('B')] }, ['n1 (1): k: [(secret)] → [(secret)]']],
    ['a map with a secret', { m: { k: secret('A') } }, {}, ['n1 (1): m: − {k: (secret)}']],
  ])('%s', (_, before, after, expected) => {
    expect(one(before, after)).toEqual(expected)
  })
})

describe('files', () => {
  const files = { 'files/motd.j2': 'hello', 'files/other': 'x' }
  const node = (settings: string): Files => ({ ...files, 'nodes.yaml': `n[1-3]: { files: { ${settings} } }\n` })

  test.each<[string, Files, Files, string[]]>([
    [
      'new content',
      node('/etc/motd: motd.j2'),
      { ...node('/etc/motd: motd.j2'), 'files/motd.j2': 'bye' },
      ['n[1-3] (3): files./etc/motd: content changed (files/motd.j2): @nodes.yaml:1'],
    ],
    [
      'a new file',
      node(''),
      node('/etc/motd: motd.j2'),
      ['n[1-3] (3): files./etc/motd: + files/motd.j2: @nodes.yaml:1'],
    ],
    [
      'a file less',
      node('/a: other, /etc/motd: motd.j2'),
      node('/a: other'),
      ['n[1-3] (3): files./etc/motd: − files/motd.j2: @nodes.yaml:1'],
    ],
    [
      'another source, whose content is another of course',
      node('/etc/motd: motd.j2'),
      node('/etc/motd: other'),
      ['n[1-3] (3): files./etc/motd.source: motd.j2 → other: @nodes.yaml:1'],
    ],
    [
      'another mode',
      node('/etc/motd: { source: motd.j2, mode: "0644" }'),
      node('/etc/motd: { source: motd.j2, mode: "0600" }'),
      ['n[1-3] (3): files./etc/motd.mode: 0644 → 0600: @nodes.yaml:1'],
    ],
    [
      'another mode and new content',
      node('/etc/motd: { source: motd.j2, mode: "0644" }'),
      { ...node('/etc/motd: { source: motd.j2, mode: "0600" }'), 'files/motd.j2': 'bye' },
      [
        'n[1-3] (3): files./etc/motd.mode: 0644 → 0600: @nodes.yaml:1',
        'n[1-3] (3): files./etc/motd: content changed (files/motd.j2): @nodes.yaml:1',
      ],
    ],
    ['content that no node uses', files, { ...files, 'files/other': 'y' }, []],
  ])('%s', async (_, before, after, expected) => {
    expect(await between(before, after)).toEqual(expected)
  })
})

test('groups and cluster', async () => {
  const files = { 'groups/a.yaml': '{}', 'groups/b.yaml': '{}' }
  const before = { ...files, 'nodes.yaml': 'n[1-3]: { groups: [a] }\n' }
  const after = { ...files, 'nodes.yaml': 'n[1-3]: { groups: [a, b] }\n', 'clusters/prod.yaml': 'nodes: n[1-3]\n' }
  expect(await between(before, after)).toEqual(['n[1-3] (3): cluster: demo → prod', 'n[1-3] (3): groups: + b'])
})

test('no secret, encrypted or not, is anywhere in a difference', async () => {
  const before = { 'nodes.yaml': 'n1: { vars: { a: !age AGE1, l: [!age AGE2, x], m: { s: !age AGE3 } } }\n' }
  const after = { 'nodes.yaml': 'n1: { vars: { a: !age AGE4, l: [!age AGE5, y], c: !age AGE6 } }\n' }
  expect(JSON.stringify(await compare(before, after))).not.toContain('AGE')
})

test('what is the same object is not looked into', () => {
  const same = new Proxy(
    {},
    {
      ownKeys: () => {
        throw new Error('looked into')
      },
    },
  )
  expect(diffSites(new Map([['n1', same]]), new Map([['n1', same]])).nodes).toBe(0)
})
