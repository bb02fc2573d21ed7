import { describe, expect, test } from 'vitest'
import { fold, parseNodeSet } from '../lib/nodeset/index.ts'
import { type Files, failureOf, format, siteOf, valueOf } from './testing.ts'
import { type Site, nodeNamed } from './site.ts'

const groupsOf = (site: Site, node = 'n1'): readonly string[] => nodeNamed(site, node).groups
const varsOf = (site: Site, node = 'n1'): unknown => valueOf(site, node)['vars']
const set = (site: Site, text: string): string => fold(parseNodeSet(text, { groups: site.sets }))
/** A group that only says who it was, last. */
const says = (name: string, groups = ''): Files => ({
  [`groups/${name}.yaml`]: `${groups}\nvars: { last: ${name}, ${name}: 1 }\n`,
})

describe('layers: defaults < cluster < groups in the order listed < node', () => {
  const files = {
    'site.yaml': 'site: demo\ndomain: demo.cluster\ndefaults: { vars: { last: defaults, defaults: 1 } }\n',
    'clusters/prod.yaml': 'nodes: n[1-3]\nvars: { last: prod, prod: 1 }\n',
    ...says('a'),
    ...says('b'),
    'nodes.yaml': `n1: {}
n2: { groups: [a, b] }
n3: { groups: [b, a], domain: n3.cluster, vars: { last: node } }
`,
  }
  test.each([
    ['n1', { last: 'prod', defaults: 1, prod: 1 }],
    ['n2', { last: 'b', defaults: 1, prod: 1, a: 1, b: 1 }],
    ['n3', { last: 'node', defaults: 1, prod: 1, a: 1, b: 1 }],
  ])('%s', async (node, vars) => {
    expect(varsOf(await siteOf(files), node)).toEqual(vars)
  })

  test('all that a node gets', async () => {
    const site = await siteOf(files)
    expect(valueOf(site, 'n3')).toEqual({
      cluster: 'prod',
      groups: ['b', 'a'],
      domain: 'n3.cluster',
      vars: { last: 'node', defaults: 1, prod: 1, a: 1, b: 1 },
    })
    expect(valueOf(site, 'n2')['domain']).toBe('demo.cluster')
  })

  test('the domain of the site is below its defaults', async () => {
    const site = await siteOf({ 'site.yaml': 'site: demo\ndomain: low\ndefaults: { domain: high }\n' })
    expect(valueOf(site)['domain']).toBe('high')
  })
})

describe('groups that build on groups', () => {
  test.each<[string, string, Files, string[]]>([
    ['come first', '[gpu]', { ...says('gpu', 'groups: [compute]'), ...says('compute') }, ['compute', 'gpu']],
    [
      'over several levels',
      '[c]',
      { ...says('c', 'groups: [b]'), ...says('b', 'groups: [a]'), ...says('a') },
      ['a', 'b', 'c'],
    ],
    [
      'in the order listed',
      '[top]',
      { ...says('top', 'groups: [y, x]'), ...says('x'), ...says('y') },
      ['y', 'x', 'top'],
    ],
    [
      'each once, where it is first needed',
      '[left, right]',
      { ...says('left', 'groups: [base]'), ...says('right', 'groups: [base]'), ...says('base') },
      ['base', 'left', 'right'],
    ],
    [
      'a group listed again that another built on keeps its place: the more special wins',
      '[gpu, compute]',
      { ...says('gpu', 'groups: [compute]'), ...says('compute') },
      ['compute', 'gpu'],
    ],
    ['groups+ says the same in a group', '[b]', { ...says('b', 'groups+: [a]'), ...says('a') }, ['a', 'b']],
    ['one that does not exist is left out', '[b, nothing]', { ...says('b', 'groups: [none]') }, ['b']],
  ])('%s', async (_, listed, files, expected) => {
    const site = await siteOf({ ...files, 'nodes.yaml': `n1: { groups: ${listed} }\n` })
    expect(groupsOf(site)).toEqual(expected)
    expect(varsOf(site)).toMatchObject({ last: expected.at(-1) })
  })

  test('the lineage of each group, itself last', async () => {
    const site = await siteOf({ ...says('c', 'groups: [b]'), ...says('b', 'groups: [a]'), ...says('a') })
    expect([...site.groups.values()].map(({ lineage }) => lineage.join(' '))).toEqual(['a', 'a b', 'a b c'])
  })

  test('a circle ends somewhere', async () => {
    const site = await siteOf({
      ...says('a', 'groups: [b]'),
      ...says('b', 'groups: [a]'),
      'nodes.yaml': 'n1: { groups: [a] }\n',
    })
    expect(groupsOf(site)).toEqual(['b', 'a'])
  })
})

describe('several entries for one node', () => {
  const groups = { ...says('a'), ...says('b'), ...says('c') }

  test.each<[string, string, string[]]>([
    ['groups of the first', 'n[1-3]: { groups: [a] }\nn1: { domain: x }\n', ['a']],
    ['later groups replace', 'n[1-3]: { groups: [a] }\nn1: { groups: [b] }\n', ['b']],
    ['groups+ appends', 'n[1-3]: { groups: [a] }\nn1: { groups+: [b] }\n', ['a', 'b']],
    [
      'groups+ over and over',
      'n1: { groups+: [a] }\nn[1-3]: { groups+: [b] }\nn[1-2]: { groups+: [c] }\n',
      ['a', 'b', 'c'],
    ],
    ['groups after groups+ replace', 'n[1-3]: { groups+: [a] }\nn1: { groups: [c] }\n', ['c']],
    ['none at all', 'n[1-3]: { groups: [a] }\nn1: { groups: [] }\n', []],
  ])('%s', async (_, nodes, expected) => {
    expect(groupsOf(await siteOf({ ...groups, 'nodes.yaml': nodes }))).toEqual(expected)
  })

  test('the later one wins, also over a more special one', async () => {
    const site = await siteOf({
      'nodes.yaml': `n[1-3]: { boot: { root: ram, args: [a] } }
n1: { boot: { root: disk, args+: [b] } }
n[1-2]: { boot: { args+: [c] } }
`,
    })
    expect(['n1', 'n2', 'n3'].map(node => valueOf(site, node)['boot'])).toEqual([
      { image: 'base', root: 'disk', args: ['a', 'b', 'c'] },
      { image: 'base', root: 'ram', args: ['a', 'c'] },
      { image: 'base', root: 'ram', args: ['a'] },
    ])
  })

  test('null takes away what lower layers said', async () => {
    const site = await siteOf({
      'files/motd': '',
      'site.yaml': 'site: demo\ndefaults: { boot: { image: base, root: ram }, files: { /etc/motd: motd } }\n',
      'nodes.yaml':
        'n[1-2]:\nn1: { boot: { root: null }, files: { /etc/motd: null } }\nn2: { boot: null, files: null }\n',
    })
    expect(valueOf(site, 'n1')).toEqual({ cluster: 'demo', groups: [], boot: { image: 'base' }, files: {} })
    expect(valueOf(site, 'n2')).toEqual({ cluster: 'demo', groups: [] })
  })

  test('nodes/*.yaml next to nodes.yaml, which is read first; the others in the order of their names', async () => {
    const site = await siteOf({
      'nodes.yaml': 'n[1-3]: { vars: { last: nodes.yaml } }\n',
      'nodes/rack2.yaml': 'n[1-2]: { vars: { last: rack2 } }\nr2n1:\n',
      'nodes/rack1.yaml': 'n[1-3]: { vars: { last: rack1 } }\n',
    })
    expect(['n1', 'n2', 'n3'].map(node => varsOf(site, node))).toEqual([
      { last: 'rack2' },
      { last: 'rack2' },
      { last: 'rack1' },
    ])
    expect([...site.nodes.keys()]).toEqual(['n1', 'n2', 'n3', 'r2n1'])
  })

  test('nodes/*.yaml alone', async () => {
    const site = await siteOf({ 'nodes.yaml': null, 'nodes/a.yaml': 'a1:\n', 'nodes/b.yaml': 'b1:\n' })
    expect([...site.nodes.keys()]).toEqual(['a1', 'b1'])
  })

  test('nodes are in the order of the files', async () => {
    expect([...(await siteOf({ 'nodes.yaml': 'z:\nn[10,9]:\na:\n' })).nodes.keys()]).toEqual(['z', 'n9', 'n10', 'a'])
  })
})

const structural = (site: Site): string[] => format(site.problems)

const members = (site: Site): string[] => [...site.clusters].map(([name, nodes]) => `${name}: ${nodes}`)

describe('clusters', () => {
  test('without any, all nodes are in the one named like the site', async () => {
    const site = await siteOf()
    expect(valueOf(site)['cluster']).toBe('demo')
    expect(members(site)).toEqual([])
    expect(structural(site)).toEqual([])
  })

  test('a test cluster of a few lines shares all but its differences', async () => {
    const site = await siteOf({
      'clusters/prod.yaml': 'nodes: n[1-2]\n',
      'clusters/test.yaml': 'nodes: n3\ndomain: test.demo\nvars: { channel: staging }\n',
      'site.yaml': 'site: demo\ndomain: demo\ndefaults: { vars: { channel: stable, x: "{{ vars.channel }}" } }\n',
    })
    expect(valueOf(site, 'n2')).toEqual({
      cluster: 'prod',
      groups: [],
      domain: 'demo',
      vars: { channel: 'stable', x: 'stable' },
    })
    expect(valueOf(site, 'n3')).toEqual({
      cluster: 'test',
      groups: [],
      domain: 'test.demo',
      vars: { channel: 'staging', x: 'staging' },
    })
  })

  test.each<[string, Files, string[], string[]]>([
    [
      'a node in none',
      { 'clusters/prod.yaml': 'nodes: n[1-2]\n' },
      ['prod: n[1-2]'],
      ['nodes.yaml:1:1: n3: is in no cluster: add it to the nodes of one in clusters/'],
    ],
    [
      'a node in two: it is in the first',
      { 'clusters/a.yaml': 'nodes: n[1-3]\n', 'clusters/b.yaml': '# the same again\nnodes: n[2-3]\n' },
      ['a: n[1-3]', 'b: '],
      ['clusters/b.yaml:2:8: nodes: n[2-3]: in cluster a already'],
    ],
    [
      'nodes that do not exist',
      { 'clusters/prod.yaml': 'nodes: n[1-5]\n' },
      ['prod: n[1-3]'],
      ['clusters/prod.yaml:1:8: nodes: n[4-5]: no such node in nodes.yaml or nodes/'],
    ],
    [
      'members by group',
      {
        ...says('a'),
        'nodes.yaml': 'n[1-2]: { groups: [a] }\nn3:\n',
        'clusters/x.yaml': 'nodes: "@a"\n',
        'clusters/y.yaml': 'nodes: "@all!@a"\n',
      },
      ['x: n[1-2]', 'y: n3'],
      [],
    ],
    [
      'members by wild card, and all that another has not',
      { 'clusters/x.yaml': 'nodes: n*!n2\n', 'clusters/y.yaml': 'nodes: "@all!@cluster:x"\n' },
      ['x: n[1,3]', 'y: n2'],
      [],
    ],
  ])('%s', async (_, files, clusters, problems) => {
    const site = await siteOf(files)
    expect(members(site)).toEqual(clusters)
    expect(structural(site)).toEqual(problems)
  })

  test('a node in no cluster gets what a cluster does not say', async () => {
    const site = await siteOf({ 'clusters/prod.yaml': 'nodes: n[1-2]\ndomain: prod\n' })
    expect(valueOf(site, 'n3')).toEqual({ cluster: 'demo', groups: [], boot: { image: 'base' } })
  })
})

const grouped = (): Promise<Site> =>
  siteOf({
    ...says('gpu', 'groups: [compute]'),
    ...says('compute'),
    ...says('empty'),
    'nodes.yaml': 'n[1-4]: { groups: [compute] }\ng[1-2]: { groups: [gpu] }\nlogin:\n',
    'clusters/prod.yaml': 'nodes: n[1-3],g1,login\n',
    'clusters/test.yaml': 'nodes: n4,g2\n',
  })

describe('@groups in node sets', () => {
  test.each([
    ['@gpu', 'g[1-2]'],
    ['@compute', 'g[1-2],n[1-4]'],
    ['@empty', ''],
    ['@all', 'g[1-2],login,n[1-4]'],
    ['@*', 'g[1-2],login,n[1-4]'],
    ['@cluster:prod', 'g1,login,n[1-3]'],
    ['@cluster:prod&@compute', 'g1,n[1-3]'],
    ['@all!@compute', 'login'],
    ['n*', 'n[1-4]'],
  ])('%s', async (text, expected) => {
    expect(set(await grouped(), text)).toBe(expected)
  })

  test.each([
    ['@gpus', 'GROUP_UNKNOWN: node set @gpus, column 1: no group is named gpus'],
    ['@cluster:dev', 'GROUP_UNKNOWN: node set @cluster:dev, column 1: no group is named cluster:dev'],
  ])('%s is unknown', async (text, expected) => {
    const { sets } = await grouped()
    expect(await failureOf(() => parseNodeSet(text, { groups: sets }))).toBe(expected)
  })
})

const resolved = (site: Site, name: string) => site.resolve(nodeNamed(site, name))

describe('the content of files', () => {
  const files = {
    'site.yaml':
      'site: demo\ndefaults: { files: { /etc/motd: motd.j2, /etc/key: { source: sub/key, mode: "0400" } } }\n',
    'files/motd.j2': 'hello\n',
    'files/sub/key': '',
  }

  test('each knows its source and the identity of its content, as git names it', async () => {
    const site = await siteOf(files)
    expect(valueOf(site)['files']).toEqual({
      '/etc/motd': { source: 'motd.j2', blob: 'ce013625030ba8dba906f756967f9e9ca394464a' },
      '/etc/key': { source: 'sub/key', mode: '0400', blob: 'e69de29bb2d1d6434b8b29ae775ad8c2e48c5391' },
    })
    expect([...site.files.blobs.keys()]).toEqual(['motd.j2', 'sub/key'])
  })

  test('a change of content is a change of the node', async () => {
    const before = await siteOf(files)
    const after = await siteOf({ ...files, 'files/motd.j2': 'bye\n' }, before)
    expect(valueOf(after)['files']).toMatchObject({
      '/etc/motd': { blob: 'b023018cabc396e7692c70bbf5784a93d3f738ab' },
      '/etc/key': { blob: 'e69de29bb2d1d6434b8b29ae775ad8c2e48c5391' },
    })
  })

  test('that changes is a change of those nodes that have it, and of no value that templates see', async () => {
    const files = {
      'nodes.yaml': 'n1: { files: { /etc/a: a, /etc/d: { source: d } } }\nn2: { files: { /etc/b: b } }\n',
      'files/a': 'a',
      'files/b': 'b',
      'files/d/x': 'x',
    }
    const before = await siteOf(files)
    const [n1, n2] = ['n1', 'n2'].map(name => resolved(before, name))
    for (const change of [{ 'files/a': 'new' }, { 'files/d/x': 'new' }, { 'files/d/y': 'new' }]) {
      const after = await siteOf({ ...files, ...change }, before)
      expect(resolved(after, 'n1').value).not.toEqual(n1?.value)
      expect(resolved(after, 'n1').own).toBe(n1?.own)
      expect(resolved(after, 'n2')).toBe(n2)
      expect(after.filesOf(nodeNamed(after, 'n2'))).toBe(before.filesOf(nodeNamed(before, 'n2')))
    }
  })
})

describe('the next version of a site works out anew only what changed', () => {
  const files = {
    'groups/a.yaml': 'vars: { x: "{{ index }}" }\n',
    'groups/b.yaml': 'vars: { x: "{{ index }}" }\n',
    'files/motd': 'hello',
    'nodes.yaml': 'n1: { groups: [a] }\nn2: { groups: [b] }\nn3: { files: { /etc/motd: motd } }\n',
    'nodes/rack2.yaml': 'r2n[1-2]:\n',
    'clusters/prod.yaml': 'nodes: n[1-3]\n',
    'clusters/test.yaml': 'nodes: r2n[1-2]\n',
  }
  const NODES = ['n1', 'n2', 'n3', 'r2n1', 'r2n2']

  const changed = async (change: Files): Promise<string[]> => {
    const before = await siteOf(files)
    const old = NODES.map(node => valueOf(before, node))
    const after = await siteOf({ ...files, ...change }, before)
    return NODES.filter((node, i) => valueOf(after, node) !== old[i])
  }

  test.each<[string, Files, string[]]>([
    ['nothing', {}, []],
    ['a group', { 'groups/a.yaml': 'vars: { x: new }\n' }, ['n1']],
    ['a file of nodes', { 'nodes/rack2.yaml': 'r2n[1-2]: { domain: x }\n' }, ['r2n1', 'r2n2']],
    ['a cluster', { 'clusters/test.yaml': 'nodes: r2n[1-2]\ndomain: x\n' }, ['r2n1', 'r2n2']],
    [
      'the members of clusters: a file is the unit',
      { 'clusters/prod.yaml': 'nodes: n[1-3],r2n1\n', 'clusters/test.yaml': 'nodes: r2n2\n' },
      NODES,
    ],
    ['what every node gets', { 'site.yaml': 'site: demo\ndefaults: { domain: x }\n' }, NODES],
    ['a group nobody is in', { 'groups/c.yaml': 'domain: x\n' }, []],
    ['the recipe of an image', { 'images/base/image.yaml': '# another\n' }, []],
  ])('%s', async (_, change, expected) => {
    expect(await changed(change)).toEqual(expected)
  })

  test('values are right whatever was remembered', async () => {
    const before = await siteOf(files)
    for (const node of NODES) valueOf(before, node)
    const change = { 'site.yaml': 'site: other\ndefaults: { vars: { s: "{{ site }}.{{ cluster }}" } }\n' }
    const [after, fresh] = [await siteOf({ ...files, ...change }, before), await siteOf({ ...files, ...change })]
    for (const node of NODES) expect(valueOf(after, node)).toEqual(valueOf(fresh, node))
    expect(varsOf(after, 'r2n1')).toEqual({ s: 'other.test' })
  })

  test('files that did not change are not read again', async () => {
    const before = await siteOf(files)
    const after = await siteOf({ ...files, 'groups/a.yaml': 'domain: x\n' }, before)
    const kept = after.files.files.filter(file => before.files.files.includes(file)).map(({ path }) => path)
    expect(kept).toEqual([
      'clusters/prod.yaml',
      'clusters/test.yaml',
      'groups/b.yaml',
      'images/base/image.yaml',
      'nodes.yaml',
      'nodes/rack2.yaml',
      'site.yaml',
    ])
  })

  test('going back gives what was there before', async () => {
    const first = await siteOf(files)
    const second = await siteOf({ ...files, 'groups/a.yaml': 'domain: x\n' }, first)
    const third = await siteOf(files, second)
    expect(valueOf(third)).toEqual(valueOf(first))
    expect(valueOf(third, 'n2')).toBe(valueOf(first, 'n2'))
  })
})

test('a node nobody has heard of', async () => {
  const site = await siteOf({ 'nodes.yaml': 'gpu[01-08]:\n' })
  expect(await failureOf(() => nodeNamed(site, 'gpu1'))).toBe(
    'NODE_UNKNOWN: no node is named gpu1 — did you mean gpu01?',
  )
  expect(await failureOf(() => nodeNamed(site, 'login'))).toBe('NODE_UNKNOWN: no node is named login')
})

test('networks and recipients as the site says them', async () => {
  const site = await siteOf({
    'site.yaml': `site: demo
networks:
  prov: { cidr: 10.77.0.0/16, vlan: 5 }
  bad: { cidr: here }
  v6: { cidr: "fd00:77::/64", gateway: "FD00:77::0:1" }
secrets: { recipients: [age1a, age1b] }
`,
  })
  expect(Object.fromEntries(site.networks)).toEqual({
    prov: { cidr: '10.77.0.0/16', vlan: 5 },
    v6: { cidr: 'fd00:77::/64', gateway: 'fd00:77::1' },
  })
  expect(site.recipients).toEqual(['age1a', 'age1b'])
})

test('a site that is hardly there can still be opened', async () => {
  const site = await siteOf({ 'site.yaml': null, 'nodes.yaml': 'n1: [what]\n"n[": {}\n' })
  expect([site.name, [...site.nodes.keys()], valueOf(site)]).toEqual(['site', ['n1'], { cluster: 'site', groups: [] }])
})
