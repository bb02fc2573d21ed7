import { describe, expect, test } from 'vitest'
import { readYaml } from '../lib/yaml/read.ts'
import { createRenderer } from '../lib/template.ts'
import { numbersOf } from '../lib/nodeset/index.ts'
import type { MapTree } from '../lib/yaml/tree.ts'
import { LayerMerger } from './layers.ts'
import { type Resolved, Resolver } from './resolve.ts'
import { format } from './testing.ts'

const factsOf = (name: string) => ({
  name,
  numbers: numbersOf(name),
  index: numbersOf(name).at(-1),
  cluster: 'prod',
  groups: ['compute', 'rack2'],
  site: 'demo',
})

/** The values of one node whose layers are these texts, the last of them in nodes.yaml. */
function resolve(texts: readonly string[], name = 'r2n07'): Resolved {
  const layers = texts.map((text, level) => ({
    name: `node ${level}`,
    file: level === texts.length - 1 ? 'nodes.yaml' : `layer${level}.yaml`,
    tree: readYaml(text).tree as MapTree,
  }))
  return new Resolver(createRenderer()).resolve(new LayerMerger().merge(layers), factsOf(name))
}

const problems = (text: string, name?: string): string[] => format(resolve([text], name).problems)

describe('templates', () => {
  test.each<[string, string, unknown]>([
    ['index: the last number of the name', 'vars: { x: "{{ index }}" }', 7],
    ['numbers: all of them', 'vars: { x: "rack {{ numbers[0] }} node {{ numbers[1] }}" }', 'rack 2 node 7'],
    ['name, cluster, site', 'vars: { x: "{{ name }}.{{ cluster }}.{{ site }}" }', 'r2n07.prod.demo'],
    ['groups', 'vars: { x: "{{ \'rack2\' in groups }}" }', true],
    ['arithmetic', 'vars: { x: "{{ (index - 1) // 4 + 1 }}" }', 2],
    ['an address by offset', 'vars: { x: "{{ \'10.77.1.250\' | ip_add(index) }}" }', '10.77.2.1'],
    ['printf', 'vars: { x: "52:54:00:00:00:{{ \'%02x\' | format(index + 8) }}" }', '52:54:00:00:00:0f'],
    ['a condition', 'vars: { x: "{% if index > 4 %}high{% else %}low{% endif %}" }', 'high'],
    ['a name that only exists inside', 'vars: { x: "{% for i in [1, 2] %}<{{ i }}>{% endfor %}" }', '<1><2>'],
    ['a default for what is not there', 'vars: { x: "{{ vars.nothing | default(\'none\') }}" }', 'none'],
    ['a word inside quotes is no name', 'vars: { x: "{{ \'vars.nothing\' }}" }', 'vars.nothing'],
  ])('%s', (_, text, expected) => {
    expect(resolve([text])).toEqual({ value: { vars: { x: expected } }, problems: [] })
  })

  test.each<[string, string, unknown]>([
    ['a number', '"{{ index + 1 }}"', 8],
    ['a fraction', '"{{ index / 2 }}"', 3.5],
    ['true or false', '"{{ index > 9 }}"', false],
    ['a list', '"{{ [index, name] }}"', [7, 'r2n07']],
    ['a map', '"{{ {\'n\': index} }}"', { n: 7 }],
    ['text', '"{{ name }}"', 'r2n07'],
    ['text that looks like a number', '"{{ \'007\' }}"', '007'],
    ['spaces around', '" {{ index }} "', 7],
    ['text around', '"0{{ index }}"', '07'],
    ['two expressions', '"{{ index }}{{ index }}"', '77'],
    ['no template: a number', '7', 7],
    ['no template: text', '"7"', '7'],
    ['no template: braces of other kinds', '"${x} {a} }}"', '${x} {a} }}'],
  ])('a lone expression keeps its type: %s', (_, text, expected) => {
    expect(resolve([`vars: { x: ${text} }`]).value).toEqual({ vars: { x: expected } })
  })

  test("a node's own values, whichever layer they come from, once everything is layered", () => {
    const texts = [
      'vars: { rack: 1, label: "rack {{ vars.rack }}" }\ndomain: "r{{ vars.rack }}.{{ cluster }}"',
      'vars: { rack: 9 }\ninterfaces: { prov: { address: 10.77.1.7 } }',
      'vars: { ip: "{{ interfaces.prov.address }}", all: "{{ vars.label }} {{ domain }}" }',
    ]
    expect(resolve(texts).value).toEqual({
      vars: { rack: 9, label: 'rack 9', ip: '10.77.1.7', all: 'rack 9 r9.prod' },
      domain: 'r9.prod',
      interfaces: { prov: { address: '10.77.1.7' } },
    })
  })

  test('chains: each value is worked out when it is needed, in whatever order they stand', () => {
    const text = `vars: { d: "{{ vars.c + 1 }}", c: "{{ vars.b + 1 }}", b: "{{ vars.a + 1 }}", a: "{{ index }}" }`
    expect(resolve([text]).value).toEqual({ vars: { d: 10, c: 9, b: 8, a: 7 } })
  })

  test('a value is given on in its one form', () => {
    const text =
      'interfaces: { prov: { mac: "AA:BB:CC:00:00:{{ index + 10 }}" } }\nvars: { m: "{{ interfaces.prov.mac }}" }'
    expect(resolve([text]).value).toEqual({
      interfaces: { prov: { mac: 'aa:bb:cc:00:00:17' } },
      vars: { m: 'aa:bb:cc:00:00:17' },
    })
  })

  test('a whole map, by its name or by a key in brackets', () => {
    const text = `vars: { rack: { row: 3 }, names: [a, b] }\ndomain: "r{{ vars.rack['row'] }}.{{ vars.names[1] }}"`
    expect(resolve([text]).value['domain']).toBe('r3.b')
  })

  test('a neighbour by a key in brackets is no circle', () => {
    expect(resolve([`vars: { a: 1, b: "{{ vars['a'] }}" }`])).toEqual({ value: { vars: { a: 1, b: 1 } }, problems: [] })
  })

  test('in lists, and in maps in lists', () => {
    const text = `boot: { args: [quiet, "node={{ name }}"] }\nvars: { disks: [{ id: "{{ index }}", on: sda }] }`
    expect(resolve([text]).value).toEqual({
      boot: { args: ['quiet', 'node=r2n07'] },
      vars: { disks: [{ id: 7, on: 'sda' }] },
    })
  })

  test('appended lists: each part rendered, in the order of the layers', () => {
    const texts = ['boot: { args: ["a={{ index }}"] }', 'boot: { args+: [b] }', 'boot: { args+: ["c={{ site }}"] }']
    expect(resolve(texts).value).toEqual({ boot: { args: ['a=7', 'b', 'c=demo'] } })
  })
})

describe('values in their one form', () => {
  test.each<[string, string, unknown]>([
    [
      'a MAC address in lower case',
      'interfaces: { p: { mac: "AA:BB:CC:DD:EE:FF" } }',
      { interfaces: { p: { mac: 'aa:bb:cc:dd:ee:ff' } } },
    ],
    ['an IPv6 address', 'bmc: { address: "FD00:0:0::0:1" }', { bmc: { address: 'fd00::1' } }],
    [
      'a port: text, also when it is a number',
      'location: { port: 7, slot: "08" }',
      { location: { port: '7', slot: '08' } },
    ],
    ['a port from a template', 'location: { port: "{{ index }}" }', { location: { port: '7' } }],
    [
      'a mode as people write it',
      'files: { /a: { source: a, mode: "0644" } }',
      { files: { '/a': { source: 'a', mode: '0644' } } },
    ],
    [
      'a mode in quotes',
      'files: { /a: { source: a, mode: "2755" } }',
      { files: { '/a': { source: 'a', mode: '2755' } } },
    ],
    ['a short mode', 'files: { /a: { source: a, mode: "600" } }', { files: { '/a': { source: 'a', mode: '0600' } } }],
    ['null is no value', 'boot: { image: null, root: ram }\nbmc: null', { boot: { root: 'ram' } }],
    ['an empty map stays', 'interfaces: { prov: {} }', { interfaces: { prov: {} } }],
  ])('%s', (_, text, expected) => {
    expect(resolve([text])).toEqual({ value: expected, problems: [] })
  })

  test('YAML 1.2 reads 0o644 as the number 420, which must not become the mode 0420', () => {
    expect(resolve(['files: { /a: { source: a, mode: 0o644 } }']).value).not.toEqual({
      files: { '/a': { source: 'a', mode: '0420' } },
    })
  })

  test('keys that mean something to JavaScript', () => {
    const { value } = resolve(['vars: { __proto__: { x: 1 }, constructor: "{{ index }}" }'])
    expect(JSON.stringify(value)).toBe('{"vars":{"__proto__":{"x":1},"constructor":7}}')
  })

  test('what needs no template is one object for all nodes with the same layers', () => {
    const resolver = new Resolver(createRenderer())
    const tree = readYaml('boot: { image: base }\nvars: { x: "{{ index }}", y: { z: 1 } }').tree as MapTree
    const root = new LayerMerger().merge([{ name: 'node n', file: 'nodes.yaml', tree }])
    const [one, two] = ['n1', 'n2'].map(name => resolver.resolve(root, factsOf(name)).value)
    expect(one?.['boot']).toBe(two?.['boot'])
    expect([one?.['vars'], two?.['vars']]).toEqual([
      { x: 1, y: { z: 1 } },
      { x: 2, y: { z: 1 } },
    ])
  })
})

describe('what goes wrong is told at the key of the value', () => {
  test.each<[string, string, string[]]>([
    [
      'an undefined name',
      'vars:\n  rack: 1\n  x: "{{ vars.rcak }}"',
      ['nodes.yaml:3:3: r2n07.vars.x: vars.rcak is not defined — did you mean rack?'],
    ],
    [
      'one like a fact',
      'domain: "{{ idnex }}"',
      ['nodes.yaml:1:1: r2n07.domain: idnex is not defined — did you mean index?'],
    ],
    ['one like nothing', 'domain: "{{ zebra }}"', ['nodes.yaml:1:1: r2n07.domain: zebra is not defined']],
    [
      'deep inside a value',
      'vars: { rack: { row: 3 }, x: "{{ vars.rack.rwo }}" }',
      ['nodes.yaml:1:27: r2n07.vars.x: vars.rack.rwo is not defined — did you mean row?'],
    ],
    [
      'behind a value that is no map',
      'vars: { rack: 3, x: "{{ vars.rack.row }}" }',
      ['nodes.yaml:1:18: r2n07.vars.x: vars.rack.row is not defined'],
    ],
    [
      'words of the language are not taken for names',
      'vars: { rack: 1, x: "{{ vars.rack if index < 3 else vars.rcak }}" }',
      ['nodes.yaml:1:18: r2n07.vars.x: vars.rcak is not defined — did you mean rack?'],
    ],
    [
      'names of the language neither',
      'vars: { rack: 1, x: "{% for i in range(3) %}{{ i }}{{ vars.rcak }}{% endfor %}" }',
      ['nodes.yaml:1:18: r2n07.vars.x: vars.rcak is not defined — did you mean rack?'],
    ],
    [
      'what every JavaScript object has',
      'vars: { x: "{{ constructor }}" }',
      ['nodes.yaml:1:9: r2n07.vars.x: constructor is not defined'],
    ],
    ['itself', 'vars: { a: "{{ vars.a }}" }', ['nodes.yaml:1:9: r2n07.vars.a: depends on itself through vars.a']],
    ['the map it is in', 'vars: { a: "{{ vars }}" }', ['nodes.yaml:1:9: r2n07.vars.a: depends on itself through vars']],
    [
      'a circle is told once',
      'vars:\n  a: "{{ vars.b }}"\n  b: "{{ vars.a }}"',
      ['nodes.yaml:3:3: r2n07.vars.b: depends on itself through vars.a'],
    ],
    [
      'what depends on a broken value is not told again',
      'vars:\n  a: "{{ index + }}"\n  b: "{{ vars.a }}"',
      ['nodes.yaml:2:3: r2n07.vars.a: syntax error: unexpected end of input, expected expression'],
    ],
    [
      'two broken values are two problems',
      'domain: "{{ x }}"\nvars: { y: "{{ z }}" }',
      ['nodes.yaml:1:1: r2n07.domain: x is not defined', 'nodes.yaml:2:9: r2n07.vars.y: z is not defined'],
    ],
    [
      'a filter that does not exist',
      'vars: { x: "{{ index | foo }}" }',
      ['nodes.yaml:1:9: r2n07.vars.x: unknown filter: filter foo is unknown'],
    ],
    [
      'a filter that fails',
      `vars: { x: "{{ 'host' | ip_add(1) }}" }`,
      ['nodes.yaml:1:9: r2n07.vars.x: "host" is not an address'],
    ],
    [
      'too much work',
      'vars: { x: "{% for i in range(9999) %}{% for j in range(9999) %}x{% endfor %}{% endfor %}" }',
      ['nodes.yaml:1:9: r2n07.vars.x: does too much work for one value'],
    ],
    [
      'the wrong type once rendered',
      'interfaces: { prov: { vlan: "{{ name }}" } }',
      ['nodes.yaml:1:23: r2n07.interfaces.prov.vlan: "r2n07" must be a number'],
    ],
    [
      'no address once rendered',
      'interfaces: { prov: { address: "10.77.1.{{ index * 100 }}" } }',
      ['nodes.yaml:1:23: r2n07.interfaces.prov.address: "10.77.1.700" is not an IP address'],
    ],
    [
      'none of the choices once rendered',
      'boot: { root: "{{ name }}" }',
      ['nodes.yaml:1:9: r2n07.boot.root: "r2n07" must be one of ram, projected, disk'],
    ],
    [
      'out of range once rendered',
      'interfaces: { prov: { vlan: "{{ index * 1000 }}" } }',
      ['nodes.yaml:1:23: r2n07.interfaces.prov.vlan: 7000 must be at most 4094'],
    ],
    [
      'one item of a list',
      'boot: { args: [quiet, "{{ [1] }}"] }',
      ['nodes.yaml:1:9: r2n07.boot.args: ["quiet",[1]] must be text'],
    ],
  ])('%s', (_, text, expected) => {
    expect(problems(text)).toEqual(expected)
  })

  test('a node without a number has no index', () => {
    expect(problems('location: { port: "{{ index }}" }', 'login')).toEqual([
      'nodes.yaml:1:13: login.location.port: index is not defined: login has no number in its name',
    ])
  })

  test('a broken value is no value; the others are there', () => {
    expect(resolve(['domain: "{{ x }}"\nvars: { a: 1 }']).value).toEqual({ vars: { a: 1 } })
  })
})

describe('secrets are never rendered', () => {
  const CIPHER = '-----BEGIN AGE ENCRYPTED FILE-----'
  const key = `!age "${CIPHER}"`

  test('a secret stays what it is, also when its text looks like a template', () => {
    expect(resolve(['bmc: { password: !age "{{ index }}" }\nvars: { k: !age "{{ x }}" }'])).toEqual({
      value: { bmc: { password: { $secret: '{{ index }}' } }, vars: { k: { $secret: '{{ x }}' } } },
      problems: [],
    })
  })

  test('a value that is nothing but a secret is that secret', () => {
    const { value } = resolve([`vars: { k: ${key}, copy: "{{ vars.k }}" }`])
    expect(value).toEqual({ vars: { k: { $secret: CIPHER }, copy: { $secret: CIPHER } } })
  })

  test.each([
    ['in a text', `boot: { args: ["key={{ vars.k }}"] }`],
    ['in a text, by its inside', `boot: { args: ["key={{ vars.k['$secret'] }}"] }`],
    ['in a condition', `domain: "{% if true %}{{ vars.k }}{% endif %}"`],
    ['where text is wanted', `domain: "{{ vars.k }}"`],
  ])('not even encrypted %s', (_, text) => {
    const { value, problems: found } = resolve([`vars: { k: ${key} }\n${text}`])
    expect(found).toHaveLength(1)
    expect(JSON.stringify([found, { ...value, vars: undefined }])).not.toContain('AGE')
  })
})
