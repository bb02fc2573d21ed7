import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { type Explanation, type Source, explainNode } from './explain.ts'
import { showValue } from './paths.ts'
import { openSite } from './site.ts'
import { directorySource } from './source.ts'
import { type Files, failureOf, siteOf } from './testing.ts'

const place = ({ file, line, column, layer }: Source): string => `${file}:${line}:${column} (${layer})`

/** As `muster explain` tells it, on one line. */
function tell({ path, value, written, from, overrides, appendsTo }: Explanation): string {
  return [
    `${path} = ${showValue(value)} from ${place(from)}`,
    ...(written === undefined ? [] : [`written ${showValue(written)}`]),
    ...overrides.map(one => `over ${showValue(one.value)} ${place(one)}`),
    ...appendsTo.map(one => `behind ${showValue(one.value)} ${place(one)}`),
  ].join(', ')
}

const explain = async (files: Files, node: string, path?: string): Promise<string[]> =>
  explainNode(await siteOf(files), node, path).map(tell)

const example = async (node: string, path?: string): Promise<string[]> =>
  explainNode(
    await openSite(await directorySource(fileURLToPath(new URL('../../examples/site', import.meta.url)))),
    node,
    path,
  ).map(tell)

describe('examples/site', () => {
  test('what a GPU node boots', async () => {
    expect(await example('gpu03', 'boot')).toEqual([
      'boot.image = gpu@stable from groups/gpu.yaml:4:3 (group gpu), written gpu@{{ vars.channel }}, ' +
        'over compute@{{ vars.channel }} groups/compute.yaml:3:3 (group compute), over base site.yaml:16:5 (defaults)',
      'boot.root = ram from site.yaml:17:5 (defaults)',
      'boot.args = [console=ttyS0,115200, nouveau.modeset=0] from groups/gpu.yaml:5:3 (group gpu), ' +
        'behind [console=ttyS0,115200] site.yaml:18:5 (defaults)',
    ])
  })

  test('everything about a node of the test cluster', async () => {
    expect((await example('t02')).map(line => line.replace(/, (written|over|behind) .*/, ''))).toEqual([
      'cluster = test from clusters/test.yaml:3:1 (cluster test)',
      'groups = [compute] from nodes.yaml:25:3 (node t[01-04])',
      'domain = test.demo.cluster from clusters/test.yaml:4:1 (cluster test)',
      'boot.image = compute@staging from groups/compute.yaml:3:3 (group compute)',
      'boot.root = ram from site.yaml:17:5 (defaults)',
      'boot.args = [console=ttyS0,115200] from site.yaml:18:5 (defaults)',
      'files./etc/motd.source = motd.j2 from site.yaml:20:18 (defaults)',
      'files./etc/motd.when = live from site.yaml:20:35 (defaults)',
      'files./etc/slurm/slurm.conf = files/slurm.conf.j2 from groups/compute.yaml:5:3 (group compute)',
      'files./etc/munge/munge.key.source = munge.key.j2 from groups/compute.yaml:6:27 (group compute)',
      'files./etc/munge/munge.key.owner = munge from groups/compute.yaml:6:49 (group compute)',
      'files./etc/munge/munge.key.group = munge from groups/compute.yaml:6:63 (group compute)',
      'files./etc/munge/munge.key.mode = 0400 from groups/compute.yaml:6:77 (group compute)',
      'update.maxUnavailable = 100% from clusters/test.yaml:6:11 (cluster test)',
      'update.healthy = 30s from clusters/test.yaml:6:33 (cluster test)',
      'vars.channel = staging from clusters/test.yaml:5:9 (cluster test)',
      'vars.packages = [numactl, hwloc-nox] from groups/compute.yaml:8:3 (group compute)',
      'location.rack = r6 from nodes.yaml:26:15 (node t[01-04])',
      'location.switch = sw6 from nodes.yaml:26:25 (node t[01-04])',
      'location.port = 2 from nodes.yaml:26:38 (node t[01-04])',
      'interfaces.prov.address = 10.77.3.2 from nodes.yaml:28:13 (node t[01-04])',
    ])
  })

  test('an exception for one node', async () => {
    expect(await example('n013', 'boot.args')).toEqual([
      'boot.args = [console=ttyS0,115200, memtest=4] from nodes.yaml:32:11 (node n013), ' +
        'behind [console=ttyS0,115200] site.yaml:18:5 (defaults)',
    ])
  })
})

describe('values', () => {
  test('over several layers, nearest first', async () => {
    const files = {
      'site.yaml': 'site: demo\ndefaults: { domain: one }\n',
      'groups/g.yaml': 'domain: two\n',
      'nodes.yaml': 'n[1-3]: { groups: [g], domain: three }\nn1: { domain: "{{ name }}.four" }\n',
    }
    expect(await explain(files, 'n1', 'domain')).toEqual([
      'domain = n1.four from nodes.yaml:2:7 (node n1), written {{ name }}.four, over three nodes.yaml:1:24 (node n[1-3]), ' +
        'over two groups/g.yaml:1:1 (group g), over one site.yaml:2:13 (defaults)',
    ])
  })

  test('a list that replaces one that was appended to', async () => {
    const files = {
      'site.yaml': 'site: demo\ndefaults: { boot: { args: [a] } }\n',
      'groups/g.yaml': 'boot: { args+: [b] }\n',
      'nodes.yaml': 'n1: { groups: [g], boot: { args: [c] } }\n',
    }
    expect(await explain(files, 'n1', 'boot.args')).toEqual([
      'boot.args = [c] from nodes.yaml:1:28 (node n1), over [b] groups/g.yaml:1:9 (group g), over [a] site.yaml:2:21 (defaults)',
    ])
  })

  test('a list appended to over and over', async () => {
    const files = {
      'site.yaml': 'site: demo\ndefaults: { boot: { args: [a] } }\n',
      'groups/g.yaml': 'boot: { args+: [b] }\n',
      'nodes.yaml': 'n1: { groups: [g], boot: { args+: ["c{{ index }}"] } }\n',
    }
    expect(await explain(files, 'n1', 'boot.args')).toEqual([
      'boot.args = [a, b, c1] from nodes.yaml:1:28 (node n1), written [c{{ index }}], ' +
        'behind [b] groups/g.yaml:1:9 (group g), behind [a] site.yaml:2:21 (defaults)',
    ])
  })

  test('what was taken away is not there; what stands in its place knows it', async () => {
    const files = { 'nodes.yaml': 'n[1-2]: { boot: { image: null } }\nn2: { boot: { image: base } }\n' }
    expect(await failureOf(() => explain(files, 'n1', 'boot.image'))).toBe(
      'PATH_UNKNOWN: n1 has no value boot.image: nodes.yaml:1 takes it away',
    )
    expect(await explain(files, 'n2', 'boot.image')).toEqual([
      'boot.image = base from nodes.yaml:2:15 (node n2), over null nodes.yaml:1:19 (node n[1-2]), over base site.yaml:5:11 (defaults)',
    ])
  })

  test('a file, by its whole path, and what belongs to it', async () => {
    const files = {
      'files/a.conf': '',
      'nodes.yaml': 'n1: { files: { /etc/a.conf: a.conf, /etc/b: { source: a.conf, mode: "0600" } } }\n',
    }
    expect(await explain(files, 'n1', 'files./etc/a.conf')).toEqual([
      'files./etc/a.conf = files/a.conf from nodes.yaml:1:16 (node n1)',
    ])
    expect(await explain(files, 'n1', 'files./etc/a.conf.source')).toEqual([
      'files./etc/a.conf = files/a.conf from nodes.yaml:1:16 (node n1)',
    ])
    expect(await explain(files, 'n1', 'files./etc/b.mode')).toEqual([
      'files./etc/b.mode = 0600 from nodes.yaml:1:63 (node n1)',
    ])
    expect(await explain(files, 'n1', 'files./etc/b')).toEqual([
      'files./etc/b.source = a.conf from nodes.yaml:1:47 (node n1)',
      'files./etc/b.mode = 0600 from nodes.yaml:1:63 (node n1)',
    ])
  })

  test('the domain of the site', async () => {
    expect(await explain({ 'site.yaml': 'site: demo\ndomain: demo.x\n' }, 'n1', 'domain')).toEqual([
      'domain = demo.x from site.yaml:2:1 (site)',
    ])
  })

  test('a secret is never shown, neither what it replaced', async () => {
    const files = {
      'site.yaml': 'site: demo\ndefaults: { vars: { key: !age AGE1 } }\n',
      'nodes.yaml': 'n1: { vars: { key: !age AGE2, list: [!age AGE3], copy: "{{ vars.key }}" } }\n',
    }
    const found = explainNode(await siteOf(files), 'n1', 'vars')
    expect(JSON.stringify(found)).not.toContain('AGE')
    expect(found.map(tell)).toEqual([
      'vars.key = (secret) from nodes.yaml:1:15 (node n1), over (secret) site.yaml:2:21 (defaults)',
      'vars.list = [(secret)] from nodes.yaml:1:31 (node n1)',
      'vars.copy = (secret) from nodes.yaml:1:50 (node n1), written {{ vars.key }}',
    ])
  })

  test('what an editor of the site must know: where a broken value is not', async () => {
    expect(await explain({ 'nodes.yaml': 'n1: { domain: "{{ nothing }}", vars: { a: 1 } }\n' }, 'n1')).toEqual([
      'cluster = demo from site.yaml:1:1 (cluster demo)',
      'boot.image = base from site.yaml:5:11 (defaults)',
      'vars.a = 1 from nodes.yaml:1:40 (node n1)',
    ])
  })
})

describe('groups and cluster', () => {
  const files = {
    'groups/a.yaml': 'groups: [base]\n',
    'groups/base.yaml': '{}\n',
    'groups/b.yaml': '{}\n',
    'clusters/prod.yaml': '# production\nnodes: n[1-3]\n',
    'nodes.yaml': 'n[1-3]: { groups: [a] }\nn2: { groups+: [b] }\nn3: { domain: x }\n',
  }
  test.each<[string, string, string[]]>([
    ['n1', 'cluster', ['cluster = prod from clusters/prod.yaml:2:1 (cluster prod)']],
    ['n1', 'groups', ['groups = [base, a] from nodes.yaml:1:11 (node n[1-3])']],
    ['n2', 'groups', ['groups = [base, a, b] from nodes.yaml:2:7 (node n2), behind [a] nodes.yaml:1:11 (node n[1-3])']],
    ['n3', 'groups', ['groups = [base, a] from nodes.yaml:1:11 (node n[1-3])']],
  ])('%s %s', async (node, path, expected) => {
    expect(await explain(files, node, path)).toEqual(expected)
  })

  test('a node in no group', async () => {
    expect(await explain({}, 'n1')).toEqual([
      'cluster = demo from site.yaml:1:1 (cluster demo)',
      'boot.image = base from site.yaml:5:11 (defaults)',
    ])
  })
})

test.each([
  ['n1', 'boot.imgae', 'PATH_UNKNOWN: n1 has no value boot.imgae — did you mean boot.image?'],
  ['n1', 'boto', 'PATH_UNKNOWN: n1 has no value boto — did you mean boot?'],
  ['n1', 'bmc.address', 'PATH_UNKNOWN: n1 has no value bmc.address'],
  ['n1', 'boot.args.0', 'PATH_UNKNOWN: n1 has no value boot.args.0 — did you mean boot.args?'],
  ['n11', '', 'NODE_UNKNOWN: no node is named n11 — did you mean n1?'],
])('%s %s is not there', async (node, path, expected) => {
  const files = { 'nodes.yaml': 'n1: { boot: { args: [a] } }\n' }
  expect(await failureOf(() => explain(files, node, path))).toBe(expected)
})
