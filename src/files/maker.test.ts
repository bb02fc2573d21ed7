import { describe, expect, it } from 'vitest'
import type { OpenSecret } from '../site/render-files.ts'
import { type Site, openSite } from '../site/site.ts'
import type { SiteSource } from '../site/source.ts'
import { type Files, SMALL, memorySource } from '../site/testing.ts'
import type { Dropped } from './holdings.ts'
import { type Batch, ListMaker } from './maker.ts'

/** What a node has, as whoever follows the batches knows it. */
class Follower {
  readonly #maker: ListMaker
  #site: Site | undefined
  readonly lists = new Map<string, { readonly text: string; readonly contents: readonly string[] }>()
  readonly contents = new Map<string, string>()
  readonly nodes = new Map<string, string>()
  readonly failures = new Map<string, string>()
  /** What the last update read, and so rendered. */
  readonly read: string[] = []

  constructor(openSecret: OpenSecret = async () => 'opened') {
    this.#maker = new ListMaker(openSecret)
  }

  /** The nodes that were told of, in order. */
  async update(files: Files): Promise<string[]> {
    const source = memorySource({ ...SMALL, ...files })
    this.#site = await openSite(source, this.#site)
    this.read.length = 0
    const read: SiteSource['read'] = file => {
      this.read.push(file.path)
      return source.read(file)
    }
    const updates = this.#maker.update(this.#site, { ...source, read })
    const told: string[] = []
    for (;;) {
      const next = await updates.next()
      if (next.done === true) {
        this.#drop(next.value)
        return told
      }
      told.push(...this.#take(next.value))
    }
  }

  #take({ contents, lists, nodes }: Batch): string[] {
    for (const { sha256, content } of contents) this.contents.set(sha256, content.toString())
    for (const { digest, ...list } of lists) this.lists.set(digest, list)
    for (const { node, list, failures } of nodes) {
      this.failures.delete(node)
      if (list === undefined) this.nodes.delete(node)
      else this.nodes.set(node, list)
      for (const { path, reason, isKept } of failures)
        this.failures.set(node, `${path}: ${reason}${isKept ? ' (kept)' : ''}`)
    }
    return nodes.map(({ node }) => node)
  }

  #drop({ lists, contents }: Dropped): void {
    for (const list of lists) this.lists.delete(list)
    for (const content of contents) this.contents.delete(content)
  }

  /** Path and text of each file, by way of the list. */
  filesOf(node: string): Record<string, string> {
    const list = this.lists.get(this.nodes.get(node) ?? '')
    const lines = list?.text.split('\n').map(line => line.split('\t')) ?? []
    return Object.fromEntries(
      lines.flatMap(([kind, , , , , sha256 = '', , , path = '']) =>
        kind === 'file' ? [[path, this.contents.get(sha256) ?? 'LOST']] : [],
      ),
    )
  }
}

const SITE = {
  'groups/gpu.yaml': 'files: { /etc/gpu: gpu.j2, /etc/all: all }\n',
  'nodes.yaml':
    'n[1-2]: { groups: [gpu], vars: { rack: 1 } }\nn3: { files: { /etc/own: own.j2, /etc/hosts: hosts.j2 } }\nn4:\n',
  'files/gpu.j2': 'gpu {{ vars.rack }}\n',
  'files/all': 'all\n',
  'files/own.j2': 'own {{ name }}\n',
  'files/hosts.j2': "{% for n in nodes('n[1-3]') %}{{ n.name }} {{ n.domain is defined }}\n{% endfor %}",
}

async function following(files: Files = SITE, openSecret?: OpenSecret): Promise<Follower> {
  const follower = new Follower(openSecret)
  await follower.update(files)
  return follower
}

describe('lists', () => {
  it('are made for all nodes; those with the same files share one', async () => {
    const follower = await following()
    expect(follower.filesOf('n1')).toEqual({ '/etc/all': 'all\n', '/etc/gpu': 'gpu 1\n' })
    expect(follower.filesOf('n3')).toEqual({ '/etc/hosts': 'n1 false\nn2 false\nn3 false\n', '/etc/own': 'own n3\n' })
    expect(follower.nodes.get('n2')).toBe(follower.nodes.get('n1'))
    expect([...follower.nodes.keys()]).toEqual(['n1', 'n2', 'n3'])
    expect([follower.lists.size, follower.contents.size]).toEqual([2, 4])
  })

  it.for<[what: string, change: Files, told: string[], files: Record<string, string>]>([
    ['nothing', {}, [], { '/etc/gpu': 'gpu 1\n', '/etc/all': 'all\n' }],
    [
      'a template',
      { 'files/gpu.j2': 'new {{ vars.rack }}\n' },
      ['n1', 'n2'],
      { '/etc/gpu': 'new 1\n', '/etc/all': 'all\n' },
    ],
    ['a file', { 'files/all': 'new\n' }, ['n1', 'n2'], { '/etc/gpu': 'gpu 1\n', '/etc/all': 'new\n' }],
    ['a file of others', { 'files/own.j2': 'new\n' }, ['n3'], { '/etc/gpu': 'gpu 1\n', '/etc/all': 'all\n' }],
    [
      'a mode',
      { 'groups/gpu.yaml': 'files: { /etc/all: { source: all, mode: "0600" } }\n' },
      ['n1', 'n2'],
      { '/etc/all': 'all\n' },
    ],
    ['that there are any', { 'groups/gpu.yaml': 'files: {}\n' }, ['n1', 'n2'], {}],
    [
      'values of one node',
      {
        'nodes.yaml':
          'n1: { groups: [gpu], vars: { rack: 2 } }\nn2: { groups: [gpu], vars: { rack: 1 } }\nn3: { files: { /etc/own: own.j2, /etc/hosts: hosts.j2 } }\nn4:\n',
      },
      ['n1'],
      { '/etc/gpu': 'gpu 2\n', '/etc/all': 'all\n' },
    ],
  ])('after a change of %s', async ([, change, told, files]) => {
    const follower = await following()
    const changed = { ...SITE, ...change }
    expect(await follower.update(changed)).toEqual(told)
    expect(follower.filesOf('n1')).toEqual(files)
    const fresh = await following(changed)
    for (const node of ['n1', 'n2', 'n3', 'n4']) {
      expect(follower.filesOf(node)).toEqual(fresh.filesOf(node))
      expect(follower.nodes.get(node)).toBe(fresh.nodes.get(node))
    }
    expect([...follower.lists.keys()].sort()).toEqual([...fresh.lists.keys()].sort())
    expect([...follower.contents.keys()].sort()).toEqual([...fresh.contents.keys()].sort())
  })

  it('that speak of other nodes change with those', async () => {
    const follower = await following()
    await follower.update({ ...SITE, 'groups/gpu.yaml': `domain: x.org\n${SITE['groups/gpu.yaml']}` })
    expect(follower.filesOf('n3')['/etc/hosts']).toBe('n1 true\nn2 true\nn3 false\n')
    expect(follower.read.sort()).toEqual(['files/all', 'files/gpu.j2', 'files/hosts.j2'])
  })

  it('that speak of other nodes are not even looked at when only something else of those changes', async () => {
    const follower = await following()
    await follower.update({ ...SITE, 'groups/gpu.yaml': `boot: { root: ram }\n${SITE['groups/gpu.yaml']}` })
    expect(follower.read.sort()).toEqual(['files/all', 'files/gpu.j2'])
  })

  it('go with their nodes', async () => {
    const follower = await following()
    await follower.update({ ...SITE, 'nodes.yaml': 'n[1-2]: { groups: [gpu], vars: { rack: 1 } }\n' })
    expect([...follower.nodes.keys()]).toEqual(['n1', 'n2'])
    expect([follower.lists.size, follower.contents.size]).toEqual([1, 2])
  })

  it('of all nodes are looked at again when networks change', async () => {
    const files = { 'nodes.yaml': 'n1: { files: { /etc/gw: gw.j2 } }\n', 'files/gw.j2': '{{ networks.prov.gateway }}' }
    const follower = await following(files)
    await follower.update({
      ...files,
      'site.yaml': SMALL['site.yaml']?.replace('gateway: 10.77.0.1', 'gateway: 10.77.0.9') ?? '',
    })
    expect(follower.filesOf('n1')).toEqual({ '/etc/gw': '10.77.0.9' })
  })
})

describe('what cannot be rendered', () => {
  const broken = { ...SITE, 'files/gpu.j2': 'gpu\n{{ vars.rck }}\n' }

  it('stays as it was, with a word about it; everything else is new', async () => {
    const follower = await following()
    await follower.update({ ...broken, 'files/all': 'new\n' })
    expect(follower.filesOf('n1')).toEqual({ '/etc/gpu': 'gpu 1\n', '/etc/all': 'new\n' })
    expect([...follower.failures]).toEqual([
      ['n1', '/etc/gpu: files/gpu.j2: line 2: there is no vars.rck (kept)'],
      ['n2', '/etc/gpu: files/gpu.j2: line 2: there is no vars.rck (kept)'],
    ])
  })

  it('is not there if there never was one', async () => {
    const follower = await following(broken)
    expect(follower.filesOf('n1')).toEqual({ '/etc/all': 'all\n' })
    expect(follower.failures.get('n1')).toBe('/etc/gpu: files/gpu.j2: line 2: there is no vars.rck')
  })

  it('stays through further changes, and is new once it can be', async () => {
    const follower = await following()
    await follower.update(broken)
    await follower.update({ ...broken, 'files/all': 'new\n' })
    expect(follower.filesOf('n1')).toEqual({ '/etc/gpu': 'gpu 1\n', '/etc/all': 'new\n' })
    await follower.update({ ...SITE, 'files/gpu.j2': 'better\n' })
    expect(follower.filesOf('n1')).toEqual({ '/etc/gpu': 'better\n', '/etc/all': 'all\n' })
    expect(follower.failures.size).toBe(0)
  })

  it('for want of a key is tried again', async () => {
    let has = false
    const files = {
      'site.yaml': `${SMALL['site.yaml']}  vars:\n    key: !age |\n      -----BEGIN AGE ENCRYPTED FILE-----\n`,
      'nodes.yaml': 'n1: { files: { /etc/key: key.j2 } }\n',
      'files/key.j2': '{{ vars.key }}',
    }
    const { MusterError } = await import('../lib/errors.ts')
    const follower = await following(files, async () => {
      if (!has) throw new MusterError('SECRET_KEY_MISSING', 'no key')
      return 'sesame'
    })
    expect(follower.failures.get('n1')).toBe('/etc/key: files/key.j2: no key')
    has = true
    await follower.update(files)
    expect(follower.filesOf('n1')).toEqual({ '/etc/key': 'sesame' })
  })
})

describe('an update that is given up half way', () => {
  it('is made good by the next', async () => {
    const follower = await following()
    const maker = new ListMaker(async () => '')
    const source = memorySource({ ...SMALL, ...SITE })
    const broken = { ...source, read: () => Promise.reject(new Error('disk')) }
    const site = await openSite(source)
    await expect(maker.update(site, broken).next()).rejects.toThrow('disk')
    const { value } = await maker.update(site, source).next()
    expect((value as Batch).nodes.map(({ list }) => list)).toEqual(
      ['n1', 'n2', 'n3'].map(node => follower.nodes.get(node)),
    )
  })
})
