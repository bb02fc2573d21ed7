import { describe, expect, it, test } from 'vitest'
import { Output, ago, duration, plural, table } from './output.ts'
import { type World, memoryIo } from './testing.ts'

describe('duration', () => {
  test.each([
    [0, '0.0 s'],
    [0.04, '0.0 s'],
    [0.4, '0.4 s'],
    [12.34, '12.3 s'],
    [99.9, '99.9 s'],
    [99.96, '1 min 40 s'],
    [100, '1 min 40 s'],
    [119.6, '2 min 0 s'],
    [125.4, '2 min 5 s'],
    [3599.7, '60 min 0 s'],
    [3600, '60 min 0 s'],
  ])('%d seconds are %s', (seconds, words) => {
    expect(duration(seconds)).toBe(words)
  })
})

describe('table', () => {
  it('aligns columns, three spaces apart, and leaves nothing behind the last', () => {
    expect(
      table(
        ['NODES', 'COUNT', 'GROUPS'],
        [
          ['n[001-128]', '128', 'compute'],
          ['login1', '1', ''],
        ],
      ),
    ).toEqual([
      'NODES        COUNT   GROUPS', //
      'n[001-128]   128     compute',
      'login1       1',
    ])
  })

  it('is its header alone when there are no rows', () => {
    expect(table(['ID', 'NAME'], [])).toEqual(['ID   NAME'])
  })

  it('lets the last column be as long as it likes', () => {
    const long = 'x'.repeat(500)
    expect(table(['A', 'B'], [['1', long]])).toEqual(['A   B', `1   ${long}`])
  })

  it('takes a row that is too short', () => {
    expect(table(['A', 'B', 'C'], [['1'], ['1', '2', '3']])).toEqual(['A   B   C', '1', '1   2   3'])
  })

  it('takes more rows than a call may have arguments', () => {
    const rows = Array.from({ length: 200_000 }, (_, index) => [`n${index}`, 'ready'])
    expect(table(['NODE', 'STATE'], rows).at(-1)).toBe('n199999   ready')
  })
})

describe('ago', () => {
  const now = new Date('2026-11-15T12:00:00Z')
  const before = (seconds: number): string => new Date(now.getTime() - seconds * 1000).toISOString()
  const MINUTE = 60
  const HOUR = 3600
  const DAY = 86_400

  test.each([
    [0, '0s'],
    [0.4, '0s'],
    [45, '45s'],
    [89, '89s'],
    [90, '2m'],
    [12 * MINUTE, '12m'],
    [89 * MINUTE, '89m'],
    [90 * MINUTE, '2h'],
    [3 * HOUR, '3h'],
    [35 * HOUR, '35h'],
    [36 * HOUR, '2d'],
    [5 * DAY, '5d'],
    [400 * DAY, '400d'],
  ])('%d seconds is %s', (seconds, said) => {
    expect(ago(before(seconds), now)).toBe(said)
  })

  it('is 0s for a clock that runs ahead', () => {
    expect(ago(before(-30), now)).toBe('0s')
  })
})

test.each([
  [0, 'node', '0 nodes'],
  [1, 'node', '1 node'],
  [2, 'node', '2 nodes'],
  [12_345, 'node', '12,345 nodes'],
  [1, 'more change', '1 more change'],
  [3, 'more change', '3 more changes'],
])('plural(%d, %s) is %s', (count, word, said) => {
  expect(plural(count, word)).toBe(said)
})

const bold = (world: World): string => new Output(memoryIo(world), 'table').style('bold', 'n001')

describe('Output', () => {
  const value = { name: 'n001', groups: ['compute', 'gpu'], port: '1', image: null }
  const written = async (format: 'table' | 'json' | 'yaml'): Promise<string> => {
    const io = memoryIo()
    await new Output(io, format).result(value, () => ['n001', 'in two groups'])
    return io.said.stdout
  }

  it('gives lines to people', async () => {
    expect(await written('table')).toBe('n001\nin two groups\n')
  })

  it('gives the whole value as JSON', async () => {
    expect(await written('json')).toBe(`{
  "name": "n001",
  "groups": [
    "compute",
    "gpu"
  ],
  "port": "1",
  "image": null
}
`)
  })

  it('gives the whole value as YAML, in which text stays text', async () => {
    expect(await written('yaml')).toBe(`name: n001
groups:
  - compute
  - gpu
port: "1"
image: null
`)
  })

  it('writes YAML without aliases, which other readers stumble over, and without folding long lines', async () => {
    const io = memoryIo()
    const same = { long: 'word '.repeat(60).trim() }
    await new Output(io, 'yaml').result([same, same], () => [])
    expect(io.said.stdout).toBe(`- long: ${same.long}\n- long: ${same.long}\n`)
  })

  it('puts notes on stderr, where they are in nobody’s way', () => {
    const io = memoryIo()
    new Output(io, 'json').note('3 errors')
    expect(io.said).toEqual({ stdout: '', stderr: '3 errors\n' })
  })

  test.each<[string, World, string]>([
    ['on a terminal', { terminal: ['stdout'] }, '\x1b[1mn001\x1b[22m'],
    ['on a terminal with NO_COLOR empty', { terminal: ['stdout'], env: { NO_COLOR: '' } }, '\x1b[1mn001\x1b[22m'],
    ['with NO_COLOR', { terminal: ['stdout'], env: { NO_COLOR: '1' } }, 'n001'],
    ['on a dumb terminal', { terminal: ['stdout'], env: { TERM: 'dumb' } }, 'n001'],
    ['in a pipe, though somebody sits at the keyboard', { terminal: ['stdin', 'stderr'] }, 'n001'],
  ])('styles %s', (_, world, said) => {
    expect(bold(world)).toBe(said)
  })
})
