import { expect, it } from 'vitest'
import { diffLists } from './list-diff.ts'

const [A, B] = ['a'.repeat(64), 'b'.repeat(64)]
const list = (...lines: string[]): string =>
  ['muster-files 1', ...lines.map(line => line.replaceAll(' ', '\t')), 'end', ''].join('\n')
const file = (path: string, digest = A): string => `file boot 0644 root root ${digest} 1 - ${path}`

it('says what is missing, too much, or another, in order of path', () => {
  const wanted = list(
    file('/a', B),
    `file live 0600 munge munge ${B} 1 - /b`,
    file('/c'),
    file('/d'),
    'link boot - - - - - - /e /y',
    'absent boot - - - - - - /f',
  )
  const had = list(file('/a'), file('/b'), file('/c'), 'link boot - - - - - - /e /x', file('/f'), file('/g'))
  expect(diffLists(wanted, had)).toEqual([
    { path: '/a', change: 'different', what: ['content'] },
    { path: '/b', change: 'different', what: ['content', 'mode', 'owner', 'group', 'when'] },
    { path: '/d', change: 'missing', what: [] },
    { path: '/e', change: 'different', what: ['target'] },
    { path: '/f', change: 'different', what: ['kind'] },
    { path: '/g', change: 'unwanted', what: [] },
  ])
})

it('what runs after a change counts by what it is, not by its number', () => {
  const one = list('run 1 one', 'run 2 two', `file live 0644 root root ${A} 1 2 /a`)
  expect(diffLists(list('run 1 two', `file live 0644 root root ${A} 1 1 /a`), one)).toEqual([])
  expect(diffLists(list('run 1 one', `file live 0644 root root ${A} 1 1 /a`), one)).toEqual([
    { path: '/a', change: 'different', what: ['then'] },
  ])
})

it('no files at all are a list, too', () => {
  expect(diffLists(list(file('/a')), '')).toEqual([{ path: '/a', change: 'missing', what: [] }])
  expect(diffLists('', list(file('/a')))).toEqual([{ path: '/a', change: 'unwanted', what: [] }])
  expect(diffLists('', '')).toEqual([])
})

it('does not compare what is no list', () => {
  expect(diffLists(list(), 'rubbish')).toBeUndefined()
  expect(diffLists('rubbish', list())).toBeUndefined()
})
