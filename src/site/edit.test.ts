import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { editYaml } from '../lib/yaml/edit.ts'
import { parseNodeSet } from '../lib/nodeset/index.ts'
import { checkSite } from './check.ts'
import { type FileEdits, addGroup, addNodes, editPath, removeGroup, removeNodes, setGroup, setNodes } from './edit.ts'
import type { Site } from './site.ts'
import { type Files, SMALL, failureOf, format, siteOf, valueOf } from './testing.ts'

type Plan = (site: Site) => FileEdits

/** The files an edit changes, as they are afterwards; a file that is gone is null. */
async function edited(files: Files, plan: Plan): Promise<Files> {
  const all: Files = { ...SMALL, ...files }
  return Object.fromEntries(
    [...plan(await siteOf(files))].map(([path, edits]) => {
      const before = String(all[path] ?? '')
      return [path, edits === null ? null : editYaml(before, edits)]
    }),
  )
}

const after = async (files: Files, plan: Plan): Promise<Site> => siteOf({ ...files, ...(await edited(files, plan)) })
const failure = (files: Files, plan: Plan): Promise<string> => failureOf(() => edited(files, plan))
const nodes = (text: string): Files => ({ 'nodes.yaml': text })

/** With comments, quotes and spaces as people leave them. */
const NODES = `# who the nodes are
n[1-3]:   # rack 1
  groups: [g]
  boot:
    args+: ["quiet"]   # less noise
    root: ram

# an exception
n2: { domain: 'two.x',   vars: {a: 1} }
`
const SITE = { 'groups/g.yaml': '# a group\nvars: { x: 1 }\n', 'nodes.yaml': NODES }

describe('addNodes', () => {
  test.each<[string, Files, Plan, Files]>([
    [
      'a new entry at the end',
      SITE,
      site => addNodes(site, 'n[4-6]', { groups: ['g'], 'boot.root': 'disk' }),
      nodes(`${NODES}n[4-6]:\n  groups: [g]\n  boot:\n    root: disk\n`),
    ],
    ['with nothing of their own', nodes('n1: {}\n'), site => addNodes(site, 'n2', {}), nodes('n1: {}\nn2: {}\n')],
    [
      'the key is the folded set',
      nodes('n1: {}\n'),
      site => addNodes(site, 'n3,n2 n5', {}),
      nodes('n1: {}\nn[2-3,5]: {}\n'),
    ],
    ['the first nodes of a site', { 'nodes.yaml': null }, site => addNodes(site, 'n1', {}), nodes('n1: {}\n')],
    [
      'a template',
      nodes(''),
      site => addNodes(site, 'n1', { 'interfaces.prov.address': "{{ '10.77.1.0' | ip_add(index) }}" }),
      nodes(`n1:\n  interfaces:\n    prov:\n      address: "{{ '10.77.1.0' | ip_add(index) }}"\n`),
    ],
    [
      'into the last of several files',
      { 'nodes/a.yaml': 'a1:\n', 'nodes/b.yaml': 'b1: {}\n' },
      site => addNodes(site, 'c1', {}),
      { 'nodes/b.yaml': 'b1: {}\nc1: {}\n' },
    ],
    [
      'into the file that was named',
      { 'nodes/a.yaml': 'a1: {}\n', 'nodes/b.yaml': 'b1:\n' },
      site => addNodes(site, 'c1', {}, { file: 'nodes/a.yaml' }),
      { 'nodes/a.yaml': 'a1: {}\nc1: {}\n' },
    ],
    [
      'into a new file',
      {},
      site => addNodes(site, 'c1', {}, { file: 'nodes/rack9.yaml' }),
      { 'nodes/rack9.yaml': 'c1: {}\n' },
    ],
    [
      'and into a cluster',
      { 'clusters/prod.yaml': '# prod\nnodes: n[1-3]   # all\ndomain: x\n' },
      site => addNodes(site, 'n[4-6]', {}, { cluster: 'prod' }),
      { 'nodes.yaml': 'n[1-3]:\nn[4-6]: {}\n', 'clusters/prod.yaml': '# prod\nnodes: n[1-6]   # all\ndomain: x\n' },
    ],
    [
      'and into a cluster that is said by group',
      { ...SITE, 'clusters/prod.yaml': 'nodes: "@g"\n' },
      site => addNodes(site, 'n4', {}, { cluster: 'prod' }),
      { 'nodes.yaml': `${NODES}n4: {}\n`, 'clusters/prod.yaml': 'nodes: "@g,n4"\n' },
    ],
  ])('%s', async (_, files, plan, expected) => {
    expect(await edited(files, plan)).toEqual(expected)
  })

  test.each<[string, Plan, string]>([
    ['one that exists', site => addNodes(site, 'n3', {}), 'NODE_EXISTS: n3 exists already'],
    ['some that exist', site => addNodes(site, 'n[2-9]', {}), 'NODE_EXISTS: n[2-3] exist already'],
    [
      'no cluster of that name',
      site => addNodes(site, 'n9', {}, { cluster: 'prod' }),
      'EDIT_INVALID: there is no cluster prod (clusters/prod.yaml)',
    ],
    [
      'no node set',
      site => addNodes(site, 'n[4-', {}),
      'NODESET_INVALID: node set n[4-, column 5: expected the end of the range 4-, found the end',
    ],
    ['a group', site => addNodes(site, '@g', {}), 'NODESET_INVALID: node set @g, column 1: groups are not known here'],
    [
      'no path',
      site => addNodes(site, 'n4', { 'boot..image': 'x' }),
      'EDIT_INVALID: "boot..image" is not a path such as boot.image',
    ],
  ])('refuses %s', async (_, plan, expected) => {
    expect(await failure(SITE, plan)).toBe(expected)
  })

  test('refuses a set of none', async () => {
    expect(await failure(SITE, site => addNodes(site, '', {}))).not.toBe('no failure')
    expect(await failure(SITE, site => addNodes(site, 'n4!n4', {}))).not.toBe('no failure')
  })

  test.each([
    'rack1.yaml',
    'nodes/deep/rack1.yaml',
    'nodes/rack1.yml',
    '../other/nodes.yaml',
    'nodes/../../x.yaml',
    '/etc/x.yaml',
  ])('refuses a file that is not read as nodes: %s', async file => {
    expect(await failure(SITE, site => addNodes(site, 'n4', {}, { file }))).toMatch(/^EDIT_INVALID: /)
  })
})

describe('setNodes', () => {
  test.each<[string, Plan, string]>([
    [
      'the entry of exactly these nodes, in place',
      site => setNodes(site, 'n[1-3]', { 'boot.root': 'disk' }),
      NODES.replace('root: ram', 'root: disk'),
    ],
    [
      'the same nodes, named in another way',
      site => setNodes(site, 'n3,n1,n2', { 'boot.root': 'disk' }),
      NODES.replace('root: ram', 'root: disk'),
    ],
    ['by group', site => setNodes(site, '@g', { 'boot.root': 'disk' }), NODES.replace('root: ram', 'root: disk')],
    [
      'a new key of that entry',
      site => setNodes(site, 'n[1-3]', { 'boot.image': 'base' }),
      NODES.replace('    root: ram\n', '    root: ram\n    image: base\n'),
    ],
    [
      'an entry on one line',
      site => setNodes(site, 'n2', { 'vars.a': 2, 'vars.b': [1, 'x'] }),
      NODES.replace('{a: 1}', '{a: 2, b: [1, x]}'),
    ],
    [
      'other nodes: a new entry at the end, which wins',
      site => setNodes(site, 'n[1-2]', { 'boot.root': 'disk' }),
      `${NODES}n[1-2]:\n  boot:\n    root: disk\n`,
    ],
    ['groups+', site => setNodes(site, 'n1', { 'groups+': ['g'] }), `${NODES}n1:\n  groups+: [g]\n`],
    ['null takes out', site => setNodes(site, 'n[1-3]', { groups: null }), NODES.replace('  groups: [g]\n', '')],
    [
      'null takes out, deep inside',
      site => setNodes(site, 'n[1-3]', { 'boot.root': null }),
      NODES.replace('    root: ram\n', ''),
    ],
    ['null takes out, on one line', site => setNodes(site, 'n2', { 'vars.a': null }), NODES.replace('{a: 1}', '{}')],
    [
      'a file, whose path has dots',
      site => setNodes(site, 'n1', { 'files./etc/a.conf': 'a.j2', 'files./etc/b.conf.mode': '0600' }),
      `${NODES}n1:\n  files:\n    /etc/a.conf: a.j2\n    /etc/b.conf:\n      mode: "0600"\n`,
    ],
  ])('%s', async (_, plan, expected) => {
    expect(await edited(SITE, plan)).toEqual(nodes(expected))
  })

  test('in the last of several files, so that it wins', async () => {
    const files = {
      'nodes.yaml': 'n[1-2]: {}\n',
      'nodes/a.yaml': 'n[1-2]: { domain: a }\n',
      'nodes/b.yaml': 'b1: {}\n',
    }
    expect(await edited(files, site => setNodes(site, 'n1', { domain: 'x' }))).toEqual({
      'nodes/b.yaml': 'b1: {}\nn1:\n  domain: x\n',
    })
    expect(await edited(files, site => setNodes(site, 'n[1-2]', { domain: 'x' }))).toEqual({
      'nodes/a.yaml': 'n[1-2]: { domain: x }\n',
    })
  })

  test('also where a later entry says something else: what was set is what they get', async () => {
    const files = nodes('n[1-2]: { vars: { x: 1 } }\nn1: { vars: { x: 2 } }\n')
    const site = await after(files, before => setNodes(before, 'n[1-2]', { 'vars.x': 3 }))
    expect(['n1', 'n2'].map(node => valueOf(site, node)['vars'])).toEqual([{ x: 3 }, { x: 3 }])
  })

  test.each<[string, string]>([
    ['where nothing was said', 'n1: {}\n'],
    ['where it was appended to before', 'n1: { boot: { args+: [b] } }\n'],
    ['where a list was', 'n1: { boot: { args: [a, b] } }\n'],
  ])('key+ adds to what the nodes have: %s', async (_, text) => {
    const files = { ...nodes(text), 'site.yaml': 'site: demo\ndefaults: { boot: { args: [a] } }\n' }
    const before = (valueOf(await siteOf(files))['boot'] as { args: string[] }).args
    const site = await after(files, old => setNodes(old, 'n1', { 'boot.args+': ['c'] }))
    expect(valueOf(site)['boot']).toEqual({ args: [...before, 'c'] })
    expect(format(checkSite(site))).toEqual([])
  })

  test('key replaces what was appended', async () => {
    const files = {
      ...nodes('n1: { boot: { args+: [b] } }\n'),
      'site.yaml': 'site: demo\ndefaults: { boot: { args: [a] } }\n',
    }
    const site = await after(files, old => setNodes(old, 'n1', { 'boot.args': ['c'] }))
    expect(valueOf(site)['boot']).toEqual({ args: ['c'] })
    expect(format(checkSite(site))).toEqual([])
  })

  test.each<[string, Plan, string]>([
    [
      'nodes that do not exist',
      site => setNodes(site, 'n[2-5]', { domain: 'x' }),
      'NODE_UNKNOWN: no such node: n[4-5]',
    ],
    ['a set of none', site => setNodes(site, 'n1!n1', { domain: 'x' }), 'NODE_UNKNOWN: n1!n1 names no node'],
    [
      'a group that does not exist',
      site => setNodes(site, '@x', { domain: 'x' }),
      'GROUP_UNKNOWN: node set @x, column 1: no group is named x',
    ],
    ['an empty path', site => setNodes(site, 'n1', { '': 'x' }), 'EDIT_INVALID: "" is not a path such as boot.image'],
    [
      'taking out what is not set here',
      site => setNodes(site, 'n2', { 'boot.root': null }),
      'EDIT_INVALID: boot.root is not set here',
    ],
    [
      'taking out from an entry that is not there',
      site => setNodes(site, 'n1', { domain: null }),
      'EDIT_INVALID: domain is not set here',
    ],
    [
      'taking out what is not set here, deep inside',
      site => setNodes(site, 'n[1-3]', { 'boot.image': null }),
      'EDIT_INVALID: boot.image is not set here',
    ],
    [
      'a value inside a value',
      site => setNodes(site, 'n2', { 'domain.x': 1 }),
      'EDIT_INVALID: n2.domain is a single value, not a map',
    ],
  ])('refuses %s', async (_, plan, expected) => {
    expect(await failure(SITE, plan)).toBe(expected)
  })
})

describe('removeNodes', () => {
  test.each<[string, string, string, string]>([
    ['an entry of its own', 'n1: { domain: x }\n# the second\nn2: {}\n', 'n1', '# the second\nn2: {}\n'],
    ['out of a range: the key is renamed', NODES, 'n3', NODES.replace('n[1-3]:', 'n[1-2]:')],
    ['out of the middle of a range', 'n[1-9]: { domain: x } # all\n', 'n[4-6]', 'n[1-3,7-9]: { domain: x } # all\n'],
    ['out of several entries', NODES, 'n2', NODES.replace('n[1-3]:', 'n[1,3]:').replace(/n2:.*\n/, '')],
    ['all of them', 'n[1-2]: {}\nn1: {}\n', 'n*', ''],
  ])('%s', async (_, text, which, expected) => {
    const files = { ...SITE, ...nodes(text) }
    expect(await edited(files, site => removeNodes(site, which))).toEqual(nodes(expected))
  })

  test('out of the clusters that name them', async () => {
    const files = { 'clusters/a.yaml': 'nodes: n[1-2]   # two\n', 'clusters/b.yaml': 'nodes: n3\n' }
    expect(await edited(files, site => removeNodes(site, 'n2'))).toEqual({
      'nodes.yaml': 'n[1,3]:\n',
      'clusters/a.yaml': 'nodes: n1   # two\n',
    })
  })

  test('a cluster that is said by group needs no edit', async () => {
    const files = { ...SITE, 'clusters/a.yaml': 'nodes: "@g"\n' }
    expect(Object.keys(await edited(files, site => removeNodes(site, 'n3')))).toEqual(['nodes.yaml'])
  })

  test('out of a cluster that is said partly by group', async () => {
    const files = {
      'groups/g.yaml': '{}\n',
      'nodes.yaml': 'n[1-3]: {}\ng[1-2]: { groups: [g] }\n',
      'clusters/a.yaml': 'nodes: "n[1-3],@g"\n',
    }
    const site = await after(files, before => removeNodes(before, 'n3,g2'))
    expect(format(checkSite(site))).toEqual([])
    expect(String(site.clusters.get('a'))).toBe('g1,n[1-2]')
  })

  test('when what is left of an entry has the name of another', async () => {
    const files = nodes('n[1-2]: { domain: x, vars: { a: 1 } }\nn1: { vars: { a: 2 } }\n')
    const site = await after(files, before => removeNodes(before, 'n2'))
    expect([...site.nodes.keys()]).toEqual(['n1'])
    expect(valueOf(site)).toMatchObject({ domain: 'x', vars: { a: 2 } })
  })

  test.each<[string, Plan, string]>([
    ['nodes that do not exist', site => removeNodes(site, 'n[3-4]'), 'NODE_UNKNOWN: no such node: n4'],
    ['a set of none', site => removeNodes(site, 'n1!n1'), 'NODE_UNKNOWN: n1!n1 names no node'],
    [
      'the last nodes of a cluster',
      site => removeNodes(site, 'n[1-2]'),
      'EDIT_INVALID: cluster a would have no node left: remove clusters/a.yaml first',
    ],
  ])('refuses %s', async (_, plan, expected) => {
    expect(await failure({ 'clusters/a.yaml': 'nodes: n[1-2]\n', 'clusters/b.yaml': 'nodes: n3\n' }, plan)).toBe(
      expected,
    )
  })
})

describe('groups', () => {
  test.each<[string, Plan, Files]>([
    [
      'added',
      site => addGroup(site, 'gpu', { groups: ['g'], 'boot.args+': ['x'] }),
      { 'groups/gpu.yaml': 'groups: [g]\nboot:\n  args+: [x]\n' },
    ],
    [
      'changed',
      site => setGroup(site, 'g', { 'vars.x': 2, domain: 'y' }),
      { 'groups/g.yaml': '# a group\nvars: { x: 2 }\ndomain: y\n' },
    ],
    ['a key taken out', site => setGroup(site, 'g', { vars: null }), { 'groups/g.yaml': '# a group\n' }],
    ['removed', site => removeGroup(site, 'free'), { 'groups/free.yaml': null }],
  ])('%s', async (_, plan, expected) => {
    expect(await edited({ ...SITE, 'groups/free.yaml': '{}\n' }, plan)).toEqual(expected)
  })

  test.each<[string, Plan, string]>([
    ['one that exists', site => addGroup(site, 'g', {}), 'GROUP_EXISTS: there is a group g already'],
    [
      'no name',
      site => addGroup(site, 'My Group', {}),
      'EDIT_INVALID: My Group is not a name (lower-case letters, digits, - and _)',
    ],
    [
      'a path',
      site => addGroup(site, '../site', {}),
      'EDIT_INVALID: ../site is not a name (lower-case letters, digits, - and _)',
    ],
    ['one that is not there', site => setGroup(site, 'x', { domain: 'x' }), 'GROUP_UNKNOWN: there is no group x'],
    ['one that is not there', site => removeGroup(site, 'x'), 'GROUP_UNKNOWN: there is no group x'],
    ['one in use by nodes', site => removeGroup(site, 'g'), 'GROUP_IN_USE: nodes n[1-3] are in group g'],
    ['one in use by a node', site => removeGroup(site, 'only'), 'GROUP_IN_USE: node o1 is in group only'],
    [
      'taking out what is not set here',
      site => setGroup(site, 'g', { domain: null }),
      'EDIT_INVALID: domain is not set here',
    ],
    [
      'taking out what is not set here, deep inside',
      site => setGroup(site, 'g', { 'vars.y': null }),
      'EDIT_INVALID: vars.y is not set here',
    ],
  ])('refuses %s', async (_, plan, expected) => {
    const files = { ...SITE, 'groups/only.yaml': '{}', 'nodes/o.yaml': 'o1: { groups: [only] }\n' }
    expect(await failure(files, plan)).toBe(expected)
  })
})

test.each([
  ['boot', ['boot']],
  ['boot.image', ['boot', 'image']],
  ['boot.args+', ['boot', 'args+']],
  ['interfaces.prov.address', ['interfaces', 'prov', 'address']],
  ['files./etc/slurm/slurm.conf', ['files', '/etc/slurm/slurm.conf']],
  ['files./etc/slurm/slurm.conf.mode', ['files', '/etc/slurm/slurm.conf', 'mode']],
  ['files./etc/a.group.owner', ['files', '/etc/a.group', 'owner']],
  ['files./etc/a', ['files', '/etc/a']],
])('editPath %s', (text, expected) => {
  expect(editPath(text)).toEqual(expected)
})

const siteText = (list: readonly (readonly [string, number])[]): string =>
  [...list.map(([key, x]) => `${key}: { vars: { x: ${x} } } # ${key}\n`), 'n[1-4]-ib: {}\nn[1-4]z: {}\n'].join('')

const varsOf = (site: Site): Record<string, unknown> =>
  Object.fromEntries([...site.nodes.keys()].map(name => [name, valueOf(site, name)['vars']]))

describe('whatever the entries are', () => {
  const set = fc.constantFrom('n1', 'n2', 'n3', 'n4', 'n[1-2]', 'n[2-3]', 'n[1-4]', 'n[1,4]', 'n[2-4]')
  const entries = fc.uniqueArray(fc.tuple(set, fc.integer({ min: 1, max: 9 })), {
    maxLength: 5,
    selector: ([key]) => key,
  })
  test('setNodes: these nodes get it, no other changes', async () => {
    await fc.assert(
      fc.asyncProperty(entries, set, async (list, chosen) => {
        const files = nodes(siteText(list))
        const before = await siteOf(files)
        const names = [...parseNodeSet(chosen)]
        fc.pre(names.every(name => before.nodes.has(name)))
        const site = await after(files, old => setNodes(old, chosen, { 'vars.x': 'new' }))
        expect(varsOf(site)).toEqual({
          ...varsOf(before),
          ...Object.fromEntries(names.map(name => [name, { x: 'new' }])),
        })
      }),
    )
  })

  test('removeNodes: these nodes are gone, no other changes', async () => {
    await fc.assert(
      fc.asyncProperty(entries, set, async (list, chosen) => {
        const files = nodes(siteText(list))
        const before = await siteOf(files)
        const names = [...parseNodeSet(chosen)]
        fc.pre(names.every(name => before.nodes.has(name)))
        const site = await after(files, old => removeNodes(old, chosen))
        const rest = Object.entries(varsOf(before)).filter(([name]) => !names.includes(name))
        expect(varsOf(site)).toEqual(Object.fromEntries(rest))
      }),
    )
  })
})
