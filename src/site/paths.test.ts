import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { flatten, get, hideSecrets, isMap, parsePath, showValue } from './paths.ts'

const node = {
  boot: { image: 'base', args: ['a', 'b'] },
  files: {
    '/etc/slurm': { source: 'a', blob: '1' },
    '/etc/slurm.conf': { source: 'b', blob: '2' },
    '/etc/slurm/slurm.conf': { source: 'c', mode: '0600', blob: '3' },
  },
  vars: { a: 1, 'a.b': 2, empty: {}, key: { $secret: 'AGE' } },
}

test.each<[string, string[] | undefined]>([
  ['', []],
  ['boot', ['boot']],
  ['boot.image', ['boot', 'image']],
  ['files./etc/slurm', ['files', '/etc/slurm']],
  ['files./etc/slurm.conf', ['files', '/etc/slurm.conf']],
  ['files./etc/slurm.source', ['files', '/etc/slurm', 'source']],
  ['files./etc/slurm.conf.source', ['files', '/etc/slurm.conf', 'source']],
  ['files./etc/slurm/slurm.conf.mode', ['files', '/etc/slurm/slurm.conf', 'mode']],
  ['vars.a', ['vars', 'a']],
  ['vars.a.b', ['vars', 'a.b']],
  ['boot.imgae', undefined],
  ['boot.image.x', undefined],
  ['boot.args.0', undefined],
  ['.boot', undefined],
  ['toString', undefined],
])('parsePath %s', (text, expected) => {
  expect(parsePath(node, text)).toEqual(expected)
})

test('every path of a value can be read back', () => {
  const key = fc.stringMatching(/^[ab/]{1,2}(\.[ab]{1,2})?$/)
  const { tree } = fc.letrec(tie => ({
    tree: fc.dictionary(key, fc.oneof({ depthSize: 'small' }, fc.integer(), tie('tree')), { maxKeys: 4 }),
  }))
  fc.assert(
    fc.property(tree, value => {
      for (const [path, leaf] of flatten(value)) {
        const read = parsePath(value, path.join('.')) ?? []
        expect(read.join('.')).toBe(path.join('.'))
        // Two paths may be written alike; then either will do.
        expect(read.length === path.length ? get(value, read) : leaf).toEqual(leaf)
      }
    }),
  )
})

test('flatten: what is no map, with its path; a secret is one value', () => {
  expect([...flatten({ boot: node.boot, vars: node.vars })].map(([path, value]) => [path.join(' '), value])).toEqual([
    ['boot image', 'base'],
    ['boot args', ['a', 'b']],
    ['vars a', 1],
    ['vars a.b', 2],
    ['vars key', { $secret: 'AGE' }],
  ])
})

test.each<[string[], unknown]>([
  [[], node],
  [['vars', 'a.b'], 2],
  [['boot', 'nothing'], undefined],
  [['boot', 'args', '0'], undefined],
  [['boot', 'image', 'length'], undefined],
  [['nothing', 'at', 'all'], undefined],
])('get %j', (path, expected) => {
  expect(get(node, path)).toBe(expected)
})

test.each<[unknown, boolean]>([
  [{}, true],
  [Object.create(null), true],
  [[], false],
  [null, false],
  ['text', false],
])('isMap %j', (value, expected) => {
  expect(isMap(value)).toBe(expected)
})

test.each<[unknown, string]>([
  [undefined, '(none)'],
  ['some text', 'some text'],
  ['', ''],
  [5, '5'],
  [false, 'false'],
  [null, 'null'],
  [[], '[]'],
  [['a', 'b c', 1], '[a, b c, 1]'],
  [{}, '{}'],
  [{ a: 1, b: { c: ['d'] } }, '{a: 1, b: {c: [d]}}'],
  [{ $secret: 'AGE' }, '(secret)'],
  [{ a: [{ b: { $secret: 'AGE' } }] }, '{a: [{b: (secret)}]}'],
  [{ source: 'motd.j2', blob: '1234' }, 'files/motd.j2'],
])('showValue %j', (value, expected) => {
  expect(showValue(value)).toBe(expected)
})

test('hideSecrets: at any depth, and nothing else changes', () => {
  const secret = { $secret: 'AGE' }
  expect(hideSecrets({ a: secret, b: [secret, { c: secret, d: 1 }], e: 'text', f: null })).toEqual({
    a: '(secret)',
    b: ['(secret)', { c: '(secret)', d: 1 }],
    e: 'text',
    f: null,
  })
  expect(hideSecrets(secret)).toBe('(secret)')
})
