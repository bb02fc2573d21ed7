import { expect, it } from 'vitest'
import { EarlierLists } from './earlier-lists.ts'

it('remembers as many lists as there is room for, the newest', () => {
  const lists = new EarlierLists(25)
  for (const name of ['a', 'b', 'c']) lists.add(name, Buffer.from(name.repeat(10)))
  expect(['a', 'b', 'c'].map(name => lists.get(name))).toEqual([undefined, 'bbbbbbbbbb', 'cccccccccc'])
  lists.add('c', Buffer.from('again'))
  expect(lists.get('c')).toBe('cccccccccc')
})

it('always knows the list without files', () => {
  expect(new EarlierLists().get('c80ca1cd7da52032')).toBe('muster-files 1\nend\n')
})
