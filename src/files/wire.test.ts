import { expect, it } from 'vitest'
import type { Batch } from './maker.ts'
import { pack, unpack } from './wire.ts'

const content = (text: string, isSecret = false) => ({ content: Buffer.from(text), sha256: text.slice(0, 3), isSecret })

it('a batch arrives as it was sent; what is large can be let go of alone', () => {
  const large = 'large'.repeat(1000)
  const sent: Batch = {
    contents: [content('one'), content(large, true), content(''), content('two')],
    lists: [
      { digest: 'a', text: 'a list ü', contents: ['one'] },
      { digest: 'b', text: large, contents: [] },
    ],
    nodes: [{ node: 'n1', list: 'a', failures: [] }],
  }
  const { batch, handed } = pack(sent)
  const got = structuredClone(batch, { transfer: handed })
  expect(got.contents.map(piece => [piece.sha256, piece.isSecret, unpack(got, piece).toString()])).toEqual([
    ['one', false, 'one'],
    ['lar', true, large],
    ['', false, ''],
    ['two', false, 'two'],
  ])
  expect(got.lists.map(piece => [piece.digest, piece.contents, unpack(got, piece).toString()])).toEqual([
    ['a', ['one'], 'a list ü'],
    ['b', [], large],
  ])
  expect(got.nodes).toEqual(sent.nodes)
  expect([got.bytes.byteLength, handed.length]).toEqual([3 + 3 + 9, 3])
})
