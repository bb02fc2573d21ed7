import { mkdir, readFile, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ReservationFiles, Staging, compareLists } from './lists.ts'
import { temporaryDirectory } from './testing.ts'

test.each([
  [['a', 'b'], ['b', 'a'], { kind: 'none' }],
  [[], [], { kind: 'none' }],
  [['a'], ['a', 'b', 'c'], { kind: 'added', lines: ['b', 'c'] }],
  [['a', 'b'], ['a'], { kind: 'changed' }],
  [['a', 'b'], ['a', 'c'], { kind: 'changed' }],
  [['a', 'b'], ['c', 'd', 'e'], { kind: 'changed' }],
])('from %j to %j: %j', (before, after, expected) => {
  expect(compareLists(new Set(before), after)).toEqual(expected)
})

async function opened(dir: string): Promise<ReservationFiles> {
  const staging = new Staging(dir)
  await staging.prepare()
  const files = new ReservationFiles(
    { reservations: join(dir, 'all'), strangers: join(dir, 'strangers'), added: join(dir, 'added') },
    staging,
  )
  await files.open()
  return files
}

const contents = async (dir: string): Promise<Record<string, string>> =>
  Object.fromEntries(
    await Promise.all(
      ['all', ...(await readdir(join(dir, 'added'))).map(name => `added/${name}`)].map(
        async name => [name, await readFile(join(dir, name), 'utf8')] as const,
      ),
    ),
  )

test('additions go into files of their own, until all is written together', async () => {
  await using dir = await temporaryDirectory()
  const files = await opened(dir.path)
  expect(await contents(dir.path)).toEqual({ all: '' })
  await files.writeAll(['a'], [])
  expect(files.compare(['a', 'b'])).toEqual({ kind: 'added', lines: ['b'] })
  expect(files.addition).toBe(join(dir.path, 'added/1'))
  await files.add(['b'])
  await files.add(['c', 'd'])
  expect(await contents(dir.path)).toEqual({ all: 'a\n', 'added/1': 'b\n', 'added/2': 'c\nd\n' })
  expect(files.compare(['a', 'b', 'c', 'd'])).toEqual({ kind: 'none' })
  await files.writeAll(['a', 'd'], [])
  expect(await contents(dir.path)).toEqual({ all: 'a\nd\n' })
})

test('what an earlier one left is known, and put in order', async () => {
  await using dir = await temporaryDirectory()
  await mkdir(join(dir.path, 'added'))
  await writeFile(join(dir.path, 'all'), 'a\nb\n')
  await writeFile(join(dir.path, 'added/7'), 'b\nc\n')
  const files = await opened(dir.path)
  expect(files.compare(['a', 'b', 'c'])).toEqual({ kind: 'none' })
  expect(await contents(dir.path)).toEqual({ all: 'a\nb\nc\n' })
})

test('a stranger that becomes a node is not just added: it is there already', async () => {
  await using dir = await temporaryDirectory()
  const files = await opened(dir.path)
  await files.writeAll([], ['52:54:00:99:00:0a,10.77.250.1,10m'])
  expect(await readFile(join(dir.path, 'strangers'), 'utf8')).toBe('52:54:00:99:00:0a,10.77.250.1,10m\n')
  expect(files.compare(['52:54:00:99:00:0a,10.77.1.1'])).toEqual({ kind: 'changed' })
  expect(files.compare(['52:54:00:00:00:01,10.77.250.1'])).toEqual({ kind: 'changed' })
  expect(files.compare(['52:54:00:00:00:01,10.77.1.1'])).toMatchObject({ kind: 'added' })
})

test('very many additions are not worth a file of their own', async () => {
  await using dir = await temporaryDirectory()
  const files = await opened(dir.path)
  const many = Array.from({ length: 1001 }, (_, index) => String(index))
  expect(files.compare(many)).toEqual({ kind: 'changed' })
  expect(files.compare(many.slice(1))).toMatchObject({ kind: 'added' })
  for (let file = 0; file < 100; file++) await files.add([`line ${file}`])
  expect(files.compare([...Array.from({ length: 100 }, (_, file) => `line ${file}`), 'one more'])).toEqual({
    kind: 'changed',
  })
})

test('a file is only replaced by a different one', async () => {
  await using dir = await temporaryDirectory()
  const staging = new Staging(dir.path)
  await staging.prepare()
  const path = join(dir.path, 'file')
  expect(await staging.placeIfNew(path, 'one')).toBe(true)
  expect(await staging.placeIfNew(path, 'one')).toBe(false)
  expect(await staging.placeIfNew(path, 'two')).toBe(true)
  expect(await readFile(path, 'utf8')).toBe('two')
})
