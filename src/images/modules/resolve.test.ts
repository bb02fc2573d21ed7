import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { MusterError } from '../../lib/errors.ts'
import { resolveModules } from './resolve.ts'
import { moduleNamed, modulesOf } from './testing.ts'

const SOME = modulesOf(
  moduleNamed('slurm', ['munge', 'users']),
  moduleNamed('munge', ['users']),
  moduleNamed('users'),
  moduleNamed('motd'),
  moduleNamed('mpi', ['slurm', 'ucx']),
  moduleNamed('ucx'),
)

const names = (wanted: readonly string[], available = SOME): string[] =>
  resolveModules(wanted, available).map(({ name }) => name)

test.each([
  [[], []],
  [['motd'], ['motd']],
  [['slurm'], ['users', 'munge', 'slurm']],
  [
    ['motd', 'slurm'],
    ['motd', 'users', 'munge', 'slurm'],
  ],
  [
    ['slurm', 'motd'],
    ['users', 'munge', 'slurm', 'motd'],
  ],
  [['mpi'], ['users', 'munge', 'slurm', 'ucx', 'mpi']],
  [
    ['slurm', 'users', 'munge', 'slurm'],
    ['users', 'munge', 'slurm'],
  ],
  [
    ['users', 'mpi'],
    ['users', 'munge', 'slurm', 'ucx', 'mpi'],
  ],
])('%j: %j', (wanted, expected) => {
  expect(names(wanted)).toEqual(expected)
})

const refusal = (work: () => unknown): { code: string; message: string; details: readonly string[] } => {
  try {
    work()
  } catch (error) {
    if (error instanceof MusterError) return { code: error.code, message: error.message, details: error.details }
    throw error
  }
  throw new Error('no failure')
}

test('a circle is named whole, with the lines that make it', () => {
  const round = modulesOf(
    moduleNamed('x', ['a']),
    moduleNamed('a', ['b']),
    moduleNamed('b', ['c']),
    moduleNamed('c', ['a']),
  )
  expect(refusal(() => resolveModules(['x'], round))).toEqual({
    code: 'MODULE_CYCLE',
    message: 'a → b → c → a',
    details: [
      'modules/a/module.yaml:3:12: a requires b',
      'modules/b/module.yaml:3:12: b requires c',
      'modules/c/module.yaml:3:12: c requires a',
    ],
  })
})

test('a module that requires itself', () => {
  expect(refusal(() => resolveModules(['a'], modulesOf(moduleNamed('a', ['a']))))).toEqual({
    code: 'MODULE_CYCLE',
    message: 'a → a',
    details: ['modules/a/module.yaml:3:12: a requires a'],
  })
})

test('a circle that nobody wants is none of our business', () => {
  expect(names(['motd'], modulesOf(moduleNamed('motd'), moduleNamed('a', ['b']), moduleNamed('b', ['a'])))).toEqual([
    'motd',
  ])
})

test('one that is not there', () => {
  expect(refusal(() => resolveModules(['slrum'], SOME))).toEqual({
    code: 'MODULE_UNKNOWN',
    message: 'slrum is in no modules directory — did you mean slurm?',
    details: [],
  })
  expect(refusal(() => resolveModules(['a'], modulesOf(moduleNamed('a', ['bb']))))).toEqual({
    code: 'MODULE_UNKNOWN',
    message: 'bb, required by a (modules/a/module.yaml:3:12), is in no modules directory',
    details: [],
  })
})

test('all that are not there at once, each with everybody who requires it', () => {
  const available = modulesOf(
    moduleNamed('a', ['lost', 'b']),
    moduleNamed('b', ['mising', 'lost'], 'common'),
    moduleNamed('missing', ['away']),
  )
  expect(refusal(() => resolveModules(['gone', 'a'], available))).toEqual({
    code: 'MODULE_UNKNOWN',
    message: '3 modules are in no modules directory',
    details: [
      'gone is in no modules directory',
      'lost, required by a (modules/a/module.yaml:3:12) and b (common:b/module.yaml:3:13), is in no modules directory',
      'mising, required by b (common:b/module.yaml:3:12), is in no modules directory — did you mean missing?',
    ],
  })
})

/** Numbered modules that only require earlier ones: any graph without circles is one of these. */
const graph = fc
  .integer({ min: 1, max: 25 })
  .chain(size =>
    fc.tuple(
      ...Array.from({ length: size }, (_, index) =>
        fc.uniqueArray(fc.integer({ min: 0, max: Math.max(0, index - 1) }), { maxLength: index === 0 ? 0 : 4 }),
      ),
    ),
  )

test('of any graph without circles: each once, and after all it requires', () => {
  fc.assert(
    fc.property(graph, fc.infiniteStream(fc.nat()), (edges, choice) => {
      const available = modulesOf(
        ...edges.map((requires, index) =>
          moduleNamed(
            `m${index}`,
            requires.map(required => `m${required}`),
          ),
        ),
      )
      const wanted = [...choice.take(5)].map(number => `m${number % edges.length}`)
      const resolved = resolveModules(wanted, available)
      const place = new Map(resolved.map(({ name }, index) => [name, index]))
      expect(place.size).toBe(resolved.length)
      expect(wanted.filter(name => !place.has(name))).toEqual([])
      const late = resolved.flatMap(({ name, requires }, index) =>
        requires
          .filter(required => !((place.get(required.name) ?? Infinity) < index))
          .map(required => [name, required]),
      )
      expect(late).toEqual([])
      // Nothing that nobody needs.
      const needed = new Set(wanted)
      for (const name of needed) for (const required of available.get(name)?.requires ?? []) needed.add(required.name)
      expect(new Set(place.keys())).toEqual(needed)
    }),
  )
})

test('a chain of a thousand', () => {
  const chain = Array.from({ length: 1000 }, (_, index) =>
    moduleNamed(`m${index}`, index === 0 ? [] : [`m${index - 1}`]),
  )
  expect(names(['m999'], modulesOf(...chain))).toEqual(chain.map(({ name }) => name))
})

test('a ladder: of a thousand million ways from top to bottom none is gone twice', () => {
  const rungs = Array.from({ length: 30 }, (_, rung) => {
    const below = rung === 0 ? [] : [`a${rung - 1}`, `b${rung - 1}`]
    return [moduleNamed(`a${rung}`, below), moduleNamed(`b${rung}`, below)]
  })
  expect(names(['a29'], modulesOf(...rungs.flat()))).toHaveLength(59)
})
