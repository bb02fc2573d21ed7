import { readFile, readdir } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { readYaml } from '../lib/yaml/read.ts'
import type { Tree } from '../lib/yaml/tree.ts'
import { jsonSchemas } from './json-schema.ts'
import { roleOf } from './files.ts'
import type { FileKind } from './schema.ts'

/** The validator that comes with fastify; editors use others, but the schema is the same. */
interface Ajv {
  compile(schema: unknown): (value: unknown) => boolean
}
const { Ajv2020 } = createRequire(import.meta.resolve('fastify'))('ajv/dist/2020.js') as {
  Ajv2020: new (options: object) => Ajv
}

const ajv = new Ajv2020({ strict: false, validateFormats: false })
const schemas = jsonSchemas()
const accepts = (kind: FileKind, text: string): boolean =>
  ajv.compile(schemas[kind])(asEditorsSeeIt(readYaml(text).tree))

/** An editor knows nothing of appending or of our tag: `args+` is a key, `!age …` a text. */
function asEditorsSeeIt(tree: Tree | undefined): unknown {
  if (tree === undefined) return null
  if (tree.kind === 'scalar') return tree.value
  if (tree.kind === 'list') return tree.items.map(asEditorsSeeIt)
  return Object.fromEntries([...tree.entries].map(([key, { value }]) => [key, asEditorsSeeIt(value)]))
}

test('one for each kind of file, with a title', () => {
  expect(Object.entries(schemas).map(([kind, { title }]) => [kind, title])).toEqual([
    ['site', 'Muster: site'],
    ['cluster', 'Muster: cluster'],
    ['group', 'Muster: group'],
    ['nodes', 'Muster: nodes'],
    ['image', 'Muster: image'],
    ['module', 'Muster: module'],
  ])
})

const kindOf = (file: string): FileKind | undefined => roleOf(file)?.kind

describe.each([
  ['examples/site', '../../examples/site'],
  ['the starter', './starter'],
])('%s', (_, path) => {
  const dir = fileURLToPath(new URL(path, import.meta.url))
  test('every file is accepted, and none when it says something unknown', async () => {
    const files = (await readdir(dir, { recursive: true })).filter(file => file.endsWith('.yaml') && kindOf(file))
    expect(files).toContain('site.yaml')
    expect(files).toContain('nodes.yaml')
    for (const file of files) {
      const kind = kindOf(file) as FileKind
      // The name in the starter is filled in when a site is made of it.
      const text = (await readFile(`${dir}/${file}`, 'utf8')).replaceAll('SITE_NAME', 'demo')
      expect([file, accepts(kind, text)]).toEqual([file, true])
      const unknown = kind === 'nodes' ? `${text}\nn999: { zebra: 1 }\n` : `${text}\nzebra: 1\n`
      expect([file, accepts(kind, unknown)]).toEqual([file, false])
    }
  })

  test('each file tells the editor which schema it has', async () => {
    for (const file of (await readdir(dir, { recursive: true })).filter(
      file => kindOf(file) && file.endsWith('.yaml'),
    )) {
      const [first] = (await readFile(`${dir}/${file}`, 'utf8')).split('\n')
      const up = '../'.repeat(file.split('/').length - 1)
      expect(`${file}: ${first}`).toBe(`${file}: # yaml-language-server: $schema=${up}.schema/${kindOf(file)}.json`)
    }
  })
})

test.each<[string, FileKind, string, boolean]>([
  ['an unknown key deep inside', 'group', 'boot: { imgae: base }', false],
  ['an unknown key of a node', 'nodes', 'n1: { interfaces: { prov: { adress: 10.0.0.1 } } }', false],
  ['args+', 'group', 'boot: { args+: [quiet] }', true],
  ['args+ that is no list', 'group', 'boot: { args+: quiet }', false],
  ['groups+ of nodes', 'nodes', 'n1: { groups+: [gpu] }', true],
  ['groups+ of a group', 'group', 'groups+: [gpu]', true],
  ['+ behind what is no list', 'group', 'boot: { root+: ram }', false],
  ['lists of the site itself', 'group', 'vars: { list+: [a], deep: { other+: [b] } }', true],
  ['a wrong choice', 'group', 'boot: { root: rma }', false],
  ['a template for a choice', 'group', 'boot: { root: "{{ vars.root }}" }', true],
  ['a template for a number', 'group', 'interfaces: { prov: { vlan: "{{ index }}" } }', true],
  ['text for a number', 'group', 'interfaces: { prov: { vlan: five } }', false],
  ['a secret', 'nodes', 'n1: { bmc: { password: !age AGE } }', true],
  ['a secret that is a map', 'nodes', 'n1: { bmc: { password: { $secret: x } } }', false],
  ['a node with nothing of its own', 'nodes', 'n[1-3]:', true],
  ['a file as text and as a map', 'group', 'files: { /a: a.j2, /b: { source: b, mode: "0644" } }', true],
  ['null takes away: a value', 'group', 'boot: { image: null }', true],
  ['null takes away: a map', 'group', 'boot:', true],
  ['null takes away: a file', 'group', 'files: { /etc/motd: null }', true],
  ['no site name', 'site', 'domain: x', false],
  ['no nodes of a cluster', 'cluster', 'domain: x', false],
  ['nodes of a cluster as a list', 'cluster', 'nodes: [n1]', false],
])('%s', (_, kind, text, expected) => {
  expect(accepts(kind, text)).toBe(expected)
})

test('every key an editor can complete is explained', () => {
  const missing: string[] = []
  const walk = (schema: Record<string, unknown>, path: string): void => {
    for (const [key, child] of Object.entries(
      (schema['properties'] ?? {}) as Record<string, Record<string, unknown>>,
    )) {
      if (child['description'] === undefined) missing.push(`${path}.${key}`)
      walk(child, `${path}.${key}`)
    }
    for (const key of ['additionalProperties', 'items'])
      if (typeof schema[key] === 'object') walk(schema[key] as Record<string, unknown>, path)
    for (const option of (schema['anyOf'] ?? []) as Record<string, unknown>[]) walk(option, path)
  }
  for (const [kind, schema] of Object.entries(schemas)) walk(schema, kind)
  expect(missing).toEqual([])
})
