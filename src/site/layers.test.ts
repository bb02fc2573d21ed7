import { expect, test } from 'vitest'
import { readYaml } from '../lib/yaml/read.ts'
import type { MapTree } from '../lib/yaml/tree.ts'
import { type Branch, type Layer, LayerMerger, type Leaf, type Origin, leavesOf, valueAt } from './layers.ts'
import { plainOf } from './validate.ts'

/** layer('group gpu', text) comes from the file gpu.yaml. */
function layer(name: string, text: string): Layer {
  const tree = readYaml(text).tree as MapTree
  return { name, file: `${name.split(' ').at(-1)}.yaml`, tree }
}

const merge = (...texts: string[]): Branch =>
  new LayerMerger().merge(texts.map((text, level) => layer(`group ${'abcd'[level]}`, text)))

/** Every leaf as `path = value  from`, then what it replaced (over) and what it is appended to (behind). */
const story = (branch: Branch): string[] =>
  [...leavesOf(branch)].map(([path, leaf]) => `${path.join('.')} ${tell(leaf)}`)

function tell(leaf: Leaf): string {
  const { appendsTo, overrides } = leaf
  const below =
    overrides === undefined ? '' : ` over ${overrides.kind === 'leaf' ? tell(overrides) : `{} ${at(overrides.origin)}`}`
  return `= ${JSON.stringify(plainOf(leaf.tree))} ${at(leaf.origin)}${below}${appendsTo === undefined ? '' : ` behind ${tell(appendsTo)}`}`
}

const at = (origin: Origin | undefined): string =>
  origin === undefined ? '?' : `${origin.layer.file}:${origin.line}:${origin.column}`

test.each<[string, string[], string[]]>([
  ['no layer at all', [], []],
  ['an empty layer', ['{}'], []],
  [
    'maps merge, at any depth',
    ['boot: { image: base, root: ram }', 'boot: { image: gpu }\nvars: { a: { b: 1 } }', 'vars: { a: { c: 2 } }'],
    [
      'boot.image = "gpu" b.yaml:1:9 over = "base" a.yaml:1:9',
      'boot.root = "ram" a.yaml:1:22',
      'vars.a.b = 1 b.yaml:2:14',
      'vars.a.c = 2 c.yaml:1:14',
    ],
  ],
  [
    'scalars replace, the whole chain is known',
    ['domain: one', 'domain: two', 'domain: three'],
    ['domain = "three" c.yaml:1:1 over = "two" b.yaml:1:1 over = "one" a.yaml:1:1'],
  ],
  [
    'lists replace',
    ['boot: { args: [a, b] }', 'boot: { args: [c] }'],
    ['boot.args = ["c"] b.yaml:1:9 over = ["a","b"] a.yaml:1:9'],
  ],
  [
    'key+ appends, over several layers',
    ['boot: { args: [a] }', 'boot: { args+: [b] }', 'boot: {}', 'boot: { args+: [c, d] }'],
    ['boot.args = ["c","d"] d.yaml:1:9 behind = ["b"] b.yaml:1:9 behind = ["a"] a.yaml:1:9'],
  ],
  [
    'another way to say where a file comes from replaces the one below, with all that goes with it',
    [
      'files: { /a: { source: a, mode: "0600" }, /b: { source: b }, /c: { link: /x } }',
      'files: { /a: { absent: true }, /b: { source: c }, /c: { when: live } }',
    ],
    [
      'files./a.absent = true b.yaml:1:16',
      'files./b.source = "c" b.yaml:1:38 over = "b" a.yaml:1:49',
      'files./c.link = "/x" a.yaml:1:68',
      'files./c.when = "live" b.yaml:1:57',
    ],
  ],
  [
    'but not elsewhere, whatever the keys are called',
    ['vars: { a: { source: a, mode: x } }', 'vars: { a: { absent: true } }'],
    ['vars.a.source = "a" a.yaml:1:14', 'vars.a.mode = "x" a.yaml:1:25', 'vars.a.absent = true b.yaml:1:14'],
  ],
  ['key+ with nothing below is a list like any other', ['args+: [a]'], ['args = ["a"] a.yaml:1:1']],
  [
    'a list replaces what was appended before',
    ['args: [a]', 'args+: [b]', 'args: [c]'],
    ['args = ["c"] c.yaml:1:1 over = ["b"] b.yaml:1:1 behind = ["a"] a.yaml:1:1'],
  ],
  [
    'key+ cannot append to what is no list: it replaces',
    ['args: text', 'args+: [b]'],
    ['args = ["b"] b.yaml:1:1 over = "text" a.yaml:1:1'],
  ],
  [
    'null takes away: what is appended later starts anew',
    ['args: [a]', 'args: null', 'args+: [b]'],
    ['args = ["b"] c.yaml:1:1 over = null b.yaml:1:1 over = ["a"] a.yaml:1:1'],
  ],
  [
    'null takes a whole map away: what comes later starts anew',
    ['boot: { image: base, root: ram }', 'boot: null', 'boot: { root: disk }'],
    ['boot.root = "disk" c.yaml:1:9'],
  ],
  [
    'a map over a scalar, a scalar over a map',
    ['vars: { a: 1, b: { c: 2 } }', 'vars: { a: { x: 3 }, b: 4 }'],
    ['vars.a.x = 3 b.yaml:1:14', 'vars.b = 4 b.yaml:1:22 over {} a.yaml:1:15'],
  ],
  [
    'keys keep the order in which layers brought them',
    ['b: 1\na: 2', 'c: 3\na: 4'],
    ['b = 1 a.yaml:1:1', 'a = 4 b.yaml:2:1 over = 2 a.yaml:2:1', 'c = 3 b.yaml:1:1'],
  ],
])('%s', (_, texts, expected) => {
  expect(story(merge(...texts))).toEqual(expected)
})

test('who belongs where is no value of a node', () => {
  const layers = [
    layer('defaults', 'groups: kept, for a layer of defaults has no members'),
    layer('cluster prod', 'nodes: n[1-3]\ndomain: prod'),
    layer('group gpu', 'groups: [compute]\nvars: { groups: [kept] }'),
    layer('node n1', 'groups+: [gpu]\ngroups: [a]\nvars: { nodes: kept }'),
  ]
  expect(story(new LayerMerger().merge(layers))).toEqual([
    'groups = "kept, for a layer of defaults has no members" defaults.yaml:1:1',
    'domain = "prod" prod.yaml:2:1',
    'vars.groups = ["kept"] gpu.yaml:2:9',
    'vars.nodes = "kept" n1.yaml:3:9',
  ])
})

test('a map knows where it was first written', () => {
  const root = merge('boot: { root: ram }', 'boot: { root: disk }\nvars: {}')
  expect([at(root.origin), at(valueAt(root, ['boot'])?.origin), at(valueAt(root, ['vars'])?.origin)]).toEqual([
    'a.yaml:1:1',
    'a.yaml:1:1',
    'b.yaml:2:1',
  ])
})

test('keys that mean something to JavaScript are keys like any other', () => {
  const root = merge('vars: { __proto__: 1, constructor: 2 }', 'vars: { toString: 3 }')
  expect(story(root)).toEqual([
    'vars.__proto__ = 1 a.yaml:1:9',
    'vars.constructor = 2 a.yaml:1:23',
    'vars.toString = 3 b.yaml:1:9',
  ])
})

test('valueAt: a path that leads nowhere', () => {
  const root = merge('boot: { args: [a] }')
  expect(valueAt(root, [])).toBe(root)
  expect(valueAt(root, ['boot', 'args', '0'])).toBeUndefined()
  expect(valueAt(root, ['root'])).toBeUndefined()
})

test('the same layers give the same object, other layers another', () => {
  const merger = new LayerMerger()
  const [low, gpu, node] = [layer('a', 'x: 1'), layer('b', 'y: 2'), layer('c', 'z: 3')]
  const once = merger.merge([low, gpu, node])
  expect(merger.merge([low, gpu, node])).toBe(once)
  expect(merger.merge([low, node, gpu])).not.toBe(once)
  expect(merger.merge([low, gpu])).not.toBe(once)
  expect(new LayerMerger().merge([low, gpu, node])).not.toBe(once)
  expect(new LayerMerger().merge([low, gpu, node])).toEqual(once)
})

test('what a layer does not mention is shared, not copied', () => {
  const merger = new LayerMerger()
  const low = layer('a', 'boot: { image: base }\nvars: { x: 1 }')
  const [one, other] = [
    merger.merge([low, layer('b', 'vars: { x: 2 }')]),
    merger.merge([low, layer('c', 'vars: { x: 3 }')]),
  ]
  expect(valueAt(one, ['boot'])).toBe(valueAt(other, ['boot']))
  expect(valueAt(one, ['vars'])).not.toBe(valueAt(other, ['vars']))
  expect(story(merger.merge([low]))).toEqual(['boot.image = "base" a.yaml:1:9', 'vars.x = 1 a.yaml:2:9'])
})
