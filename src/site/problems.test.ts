import { expect, test } from 'vitest'
import { type Problem, formatProblem, siteInvalid, tidyProblems } from './problems.ts'

const at = { file: 'nodes.yaml', line: 3, column: 5 }

test.each<[Problem, string]>([
  [{ ...at, message: 'is not text' }, 'nodes.yaml:3:5: is not text'],
  [{ ...at, path: '', message: 'is not text' }, 'nodes.yaml:3:5: is not text'],
  [{ ...at, path: 'boot.root', message: 'is wrong' }, 'nodes.yaml:3:5: boot.root: is wrong'],
  [{ ...at, path: 'boot.root', nodes: ['n1'], message: 'is wrong' }, 'nodes.yaml:3:5: n1.boot.root: is wrong'],
  [{ ...at, path: 'boot', nodes: ['n3', 'n1', 'n2'], message: 'is wrong' }, 'nodes.yaml:3:5: n[1-3].boot: is wrong'],
  [{ ...at, path: 'boot', nodes: ['n1', 'login'], message: 'is wrong' }, 'nodes.yaml:3:5: login,n1.boot: is wrong'],
  [{ ...at, path: '', nodes: ['n1', 'n2'], message: 'is wrong' }, 'nodes.yaml:3:5: n[1-2]: is wrong'],
])('%j', (problem, expected) => {
  expect(formatProblem(problem)).toBe(expected)
})

const tidy = (...problems: Partial<Problem>[]): string[] =>
  tidyProblems(problems.map(problem => ({ ...at, message: 'is wrong', ...problem }))).map(formatProblem)

test('in the order of files, lines, columns and words', () => {
  const found = tidy(
    { file: 'site.yaml', line: 1 },
    { line: 10, column: 1 },
    { line: 9, column: 20 },
    { line: 9, column: 3, message: 'b' },
    { line: 9, column: 3, message: 'a' },
    { file: 'groups/g.yaml', line: 99 },
  )
  expect(found).toEqual([
    'groups/g.yaml:99:5: is wrong',
    'nodes.yaml:9:3: a',
    'nodes.yaml:9:3: b',
    'nodes.yaml:9:20: is wrong',
    'nodes.yaml:10:1: is wrong',
    'site.yaml:1:5: is wrong',
  ])
})

test('each once', () => {
  expect(tidy({}, {}, { path: 'a' }, { path: 'a' })).toEqual([
    'nodes.yaml:3:5: is wrong',
    'nodes.yaml:3:5: a: is wrong',
  ])
})

test('the same on many nodes becomes one, told with the words of the first', () => {
  const found = tidy(
    { nodes: ['n1'], path: 'x', message: '10.0.0.1 is outside network prov (10.1.0.0/16)' },
    { nodes: ['n2'], path: 'x', message: '10.0.0.2 is outside network prov (10.1.0.0/16)' },
    { nodes: ['n3'], path: 'x', message: '10.0.0.3 is outside network prov (10.1.0.0/16)' },
  )
  expect(found).toEqual(['nodes.yaml:3:5: n[1-3].x: 10.0.0.1 is outside network prov (10.1.0.0/16)'])
})

test('what is another problem stays another problem', () => {
  const found = tidy(
    { nodes: ['n1'], path: 'x', message: 'there is no image gpu' },
    { nodes: ['n2'], path: 'x', message: 'there is no image big' },
    { nodes: ['n3'], path: 'y', message: 'there is no image gpu' },
    { nodes: ['n4'], path: 'x', line: 4, message: 'there is no image gpu' },
  )
  expect(found).toEqual([
    'nodes.yaml:3:5: n2.x: there is no image big',
    'nodes.yaml:3:5: n1.x: there is no image gpu',
    'nodes.yaml:3:5: n3.y: there is no image gpu',
    'nodes.yaml:4:5: n4.x: there is no image gpu',
  ])
})

test('without nodes, a difference in digits is a difference', () => {
  expect(tidy({ message: 'already on line 1' }, { message: 'already on line 2' })).toHaveLength(2)
})

test('the problems given are left as they were', () => {
  const problems = [
    { ...at, nodes: ['n1'], message: 'x' },
    { ...at, nodes: ['n2'], message: 'x' },
  ]
  tidyProblems(problems)
  expect(problems.map(({ nodes }) => nodes)).toEqual([['n1'], ['n2']])
})

test('100,000 nodes with one mistake', () => {
  const problems = Array.from({ length: 100_000 }, (_, i) => ({
    ...at,
    nodes: [`n${i + 1}`],
    message: `${i} is wrong`,
  }))
  expect(tidyProblems(problems).map(formatProblem)).toEqual(['nodes.yaml:3:5: n[1-100000]: 0 is wrong'])
})

test.each([
  [[{ ...at, message: 'is wrong' }], 'the site has 1 error', ['nodes.yaml:3:5: is wrong']],
  [
    [
      { ...at, message: 'is wrong' },
      { ...at, path: 'a', message: 'too' },
    ],
    'the site has 2 errors',
    ['nodes.yaml:3:5: is wrong', 'nodes.yaml:3:5: a: too'],
  ],
])('as an error: %#', (problems, message, details) => {
  expect(siteInvalid(problems)).toMatchObject({
    code: 'SITE_INVALID',
    status: 422,
    message,
    details,
    hint: 'correct the lines named above; what runs now is unchanged',
  })
})
