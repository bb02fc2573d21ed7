import { expect, test } from 'vitest'
import { failureOf } from '../../site/testing.ts'
import { combineModules } from './combine.ts'
import { moduleNamed, modulesOf } from './testing.ts'

const from = (origin: string, ...names: string[]) => modulesOf(...names.map(name => moduleNamed(name, [], origin)))

const origins = (...sources: Parameters<typeof combineModules>[0]): string[] =>
  [...combineModules(sources)].map(([name, { origin }]) => `${name} ${origin}`)

test('all of them, by name', () => {
  expect(origins(from('site', 'b'), from('common', 'c', 'a'))).toEqual(['a common', 'b site', 'c common'])
  expect(origins()).toEqual([])
})

test('the site wins, wherever it stands', () => {
  expect(origins(from('site', 'a'), from('common', 'a'), from('other', 'a'))).toEqual(['a site'])
  expect(origins(from('common', 'a'), from('site', 'a'))).toEqual(['a site'])
})

test('two sources with the same name are refused', async () => {
  expect(await failureOf(() => combineModules([from('site', 'b'), from('common', 'a'), from('other', 'a')]))).toBe(
    'MODULE_INVALID: a is in several sources: common:a/module.yaml, other:a/module.yaml',
  )
})

test('all such names at once', () => {
  expect(() => combineModules([from('common', 'b', 'a'), from('other', 'a', 'b')])).toThrow(
    expect.objectContaining({
      code: 'MODULE_INVALID',
      message: 'modules are in several sources',
      details: [
        'a is in several sources: common:a/module.yaml, other:a/module.yaml',
        'b is in several sources: common:b/module.yaml, other:b/module.yaml',
      ],
    }),
  )
})
