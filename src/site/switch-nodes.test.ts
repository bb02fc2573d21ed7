import { describe, expect, it } from 'vitest'
import { removeNodes, setNodes } from './edit.ts'
import { explainNode } from './explain.ts'
import { portNumbers } from './switches.ts'
import { SMALL, problemsOf, siteOf, valueOf } from './testing.ts'

const COMPUTE = `interfaces:
  prov: { address: "{{ '10.77.1.0' | ip_add(index) }}" }
`
const site = (switches: string, more: Record<string, string | null> = {}) => ({
  'site.yaml': `${SMALL['site.yaml']}switches:\n${switches}`,
  'groups/compute.yaml': COMPUTE,
  'nodes.yaml': null,
  ...more,
})
const TWO = `  sw1:
    rack: 1
    nodes: { ports: 1-3, name: "n{{ rack }}{{ '%02d' | format(port) }}", groups: [compute] }
  sw2:
    rack: r2
    nodes: { ports: "7,9", name: "node-{{ port }}", port: "Ethernet{{ port }}" }
`

describe('nodes at the ports of a switch', () => {
  it('have the names, places and groups that the switch gives them', async () => {
    const made = await siteOf(site(TWO))
    expect([...made.nodes.keys()]).toEqual(['n101', 'n102', 'n103', 'node-7', 'node-9'])
    expect(valueOf(made, 'n102')).toMatchObject({
      groups: ['compute'],
      location: { switch: 'sw1', port: '2', rack: '1' },
      interfaces: { prov: { address: '10.77.1.102' } },
      boot: { image: 'base' },
    })
    expect(valueOf(made, 'node-9')).toMatchObject({
      groups: [],
      location: { switch: 'sw2', port: 'Ethernet9', rack: 'r2' },
    })
    expect(await problemsOf(site(TWO))).toEqual([])
  })

  it('may have more said of them in nodes.yaml, which counts more', async () => {
    const files = site(TWO, { 'nodes.yaml': 'n101: { location: { rack: attic }, boot: { args: [quiet] } }\nx1:\n' })
    const made = await siteOf(files)
    expect([...made.nodes.keys()]).toEqual(['n101', 'n102', 'n103', 'node-7', 'node-9', 'x1'])
    expect(valueOf(made, 'n101')).toMatchObject({
      groups: ['compute'],
      location: { switch: 'sw1', port: '1', rack: 'attic' },
      boot: { args: ['quiet'] },
    })
  })

  it('are explained by the line that makes them', async () => {
    const [found] = explainNode(await siteOf(site(TWO)), 'n102', 'location.port')
    expect(found).toMatchObject({ value: '2', from: { layer: 'switch sw1', file: 'site.yaml', line: 9 } })
  })

  it('are the same objects while site.yaml is, so that a change elsewhere costs nothing', async () => {
    const before = await siteOf(site(TWO))
    const after = await siteOf(site(TWO, { 'nodes.yaml': 'x1:\n' }), before)
    expect(after.nodes.get('n101')?.entries[0]).toBe(before.nodes.get('n101')?.entries[0])
  })

  it('are changed in nodes.yaml, and taken away in site.yaml', async () => {
    const made = await siteOf(site(TWO, { 'nodes.yaml': 'x1:\n' }))
    expect([...setNodes(made, 'n101', { 'boot.from': 'disk' }).keys()]).toEqual(['nodes.yaml'])
    expect(() => removeNodes(made, 'n101')).toThrow(
      'n101 is a port of a switch: switches.sw1.nodes in site.yaml makes it',
    )
  })
})

describe('what is wrong is said at its line', () => {
  it.for<[what: string, switches: string, problems: string[]]>([
    [
      'a template',
      '  sw1: { nodes: { ports: 1-3, name: "n{{ rack }}{{ port }}" } }\n',
      [
        'site.yaml:7:37: switches.sw1.nodes.name: rack is not defined: there are port, switch and, where the switch has one, rack',
      ],
    ],
    [
      'one name for two ports',
      '  sw1: { nodes: { ports: 1-3, name: n1 } }\n',
      ['site.yaml:7:37: switches.sw1.nodes.name: sw1 port 2 is called n1, as sw1 port 1 is'],
    ],
    [
      'a group that is not there',
      '  sw1: { nodes: { ports: 1-2, name: "n{{ port }}", groups: [computer] } }\n',
      ['site.yaml:7:61: switches.sw1.nodes.groups: there is no group computer — did you mean compute?'],
    ],
    [
      'no list of ports',
      '  sw1: { nodes: { ports: 3-1, name: "n{{ port }}" } }\n',
      ['site.yaml:7:26: switches.sw1.nodes.ports: is not a list of ports such as 1-32 or 1-24,33-40'],
    ],
    [
      'a form of circuit ids that nobody knows',
      '  sw1: { circuit: cisko }\n',
      [
        'site.yaml:7:19: switches.sw1.circuit: is neither one of arista, cisco, dell, hp, juniper, linux, text nor a pattern with {{ port }}',
      ],
    ],
    [
      'a name for ports that is the same for all',
      '  sw1: { circuit: cisco, port: Gi1 }\n',
      ['site.yaml:7:32: switches.sw1.port: has no {{ port }}: all ports would have one name'],
    ],
    [
      'two that cannot be told apart',
      '  sw1: { circuit: cisco, remote: 00:1b:2c:33:44:55 }\n  sw2: { circuit: cisco, remote: 001B.2C33.4455 }\n',
      [
        'site.yaml:8:34: switches.sw2.remote: option 82 of sw2 and sw1 cannot be told apart: give each another remote or relay',
      ],
    ],
  ])('%s', async ([, switches, problems]) => {
    expect(await problemsOf(site(switches, { 'nodes.yaml': 'x1:\n' }))).toEqual(problems)
  })

  it('also where two lists put two nodes at one place', async () => {
    const nodes = { 'nodes.yaml': 'x1: { location: { switch: sw1, port: "2" } }\n' }
    const [problem] = await problemsOf(site('  sw1: { nodes: { ports: 1-3, name: "n{{ port }}" } }\n', nodes))
    expect(problem).toContain('same place as n2 (sw1 port 2, site.yaml:7)')
  })
})

it.for<[text: string, ports: number[] | undefined]>([
  ['1-3', [1, 2, 3]],
  ['7', [7]],
  ['1-2, 5', [1, 2, 5]],
  ['1-3,2', undefined],
  ['1-', undefined],
  ['', undefined],
  ['1-99999', undefined],
])('ports %j', ([text, ports]) => {
  expect(portNumbers(text)).toEqual(ports)
})
