import { expect, test } from 'vitest'
import { parseIndex } from './packed.ts'

const KEY = 'ab'.repeat(32)
const squashfs = {
  format: 'squashfs',
  recipe: '1 zstd',
  contents: [[KEY, 96, [5, 0, 16_777_300]]],
  fragments: [[KEY, 200, 9]],
}
const cpio = { format: 'cpio', recipe: '1 zstd', segments: [[KEY, 0, 10]] }

test.each([squashfs, cpio, { ...squashfs, contents: [], fragments: [] }, { ...cpio, segments: [] }])(
  'reads %j',
  index => {
    expect(parseIndex(JSON.parse(JSON.stringify(index)))).toEqual(index)
  },
)

test.each([
  undefined,
  null,
  'squashfs',
  [],
  {},
  { ...squashfs, format: 'erofs' },
  { ...squashfs, recipe: 1 },
  { ...squashfs, recipe: 'x'.repeat(201) },
  { ...squashfs, more: 1 },
  { ...squashfs, contents: undefined },
  { ...squashfs, contents: [[KEY, 96]] },
  { ...squashfs, contents: [['AB'.repeat(32), 96, []]] },
  { ...squashfs, contents: [[KEY, -1, []]] },
  { ...squashfs, contents: [[KEY, 1.5, []]] },
  { ...squashfs, contents: [[KEY, 2 ** 53, []]] },
  { ...squashfs, contents: [[KEY, 96, [2 ** 25]]] },
  { ...squashfs, fragments: [[KEY, 96, -1]] },
  { ...squashfs, fragments: [[KEY, 96, 5, 5]] },
  { ...cpio, segments: [[KEY, 0, 0]] },
  { ...cpio, segments: [[KEY, '0', 1]] },
  { ...cpio, contents: [] },
])('does not read %j', index => {
  expect(parseIndex(index)).toBeUndefined()
})
