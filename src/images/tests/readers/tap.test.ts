import { describe, expect, test } from 'vitest'
import { readTap } from './tap.ts'

/** `passed 1 opens`, with the message behind it. */
const lines = (text: string): string[] =>
  readTap(text).map(({ status, attribute, message }) =>
    [`${status} ${attribute}`, ...(message === undefined ? [] : [message])].join(': '),
  )

describe('points', () => {
  test.each([
    ['ok 1 - opens', 'passed 1 opens'],
    ['ok 1 opens', 'passed 1 opens'],
    ['ok - opens', 'passed 1 opens'],
    ['ok', 'passed 1'],
    ['ok 1', 'passed 1'],
    ['not ok 1 - opens', 'failed 1 opens'],
    ['not ok', 'failed 1'],
    ['ok 1 - opens # SKIP no disk', 'skipped 1 opens: no disk'],
    ['ok 1 # skip', 'skipped 1'],
    ['ok 1 opens # Skipped: no disk', 'skipped 1 opens: no disk'],
    ['not ok 1 - opens # TODO later', 'skipped 1 opens: to do: later'],
    ['not ok 1 - opens # todo', 'skipped 1 opens: to do'],
    ['ok 1 - opens # TODO later', 'passed 1 opens'],
    ['not ok 1 - opens # SKIP no disk', 'failed 1 opens: no disk'],
    [String.raw`ok 1 - channel \# skip this`, 'passed 1 channel # skip this'],
    ['ok 1 - issue #skip5', 'skipped 1 issue'],
    ['ok 1 - issue#skip5', 'passed 1 issue#skip5'],
    ['ok 1 - 100 % # of disks', 'passed 1 100 % # of disks'],
  ])('%s', (line, expected) => {
    expect(lines(`1..1\n${line}\n`)).toEqual([expected])
  })

  test('a failure says what should have been', () => {
    expect(readTap('1..1\nnot ok 1 - opens\n')).toEqual([
      { attribute: '1 opens', status: 'failed', expected: 'ok', found: 'not ok' },
    ])
  })

  test('what is said behind a failure belongs to it, in # lines and in YAML', () => {
    const text = `TAP version 14
1..3
ok 1 - one
# nothing to say
not ok 2 - two
#   Failed test 'two'
#   at t/two.t line 3.
not ok 3 - three
  ---
  message: no disk
  at: 1..2
  ok: not ok 4
  ...
`
    expect(lines(text)).toEqual([
      'passed 1 one',
      "failed 2 two: Failed test 'two'\n  at t/two.t line 3.",
      'failed 3 three: message: no disk\nat: 1..2\nok: not ok 4',
    ])
  })

  test('subtests are counted by their parents, and other lines are no concern of ours', () => {
    const text = `1..1
okay, let us begin
    1..2
    not ok 1 - inner
    ok 2 - inner
pragma +strict
ok 1 - outer
`
    expect(lines(text)).toEqual(['passed 1 outer'])
  })

  test('lines may end as on Windows', () => {
    expect(lines('1..1\r\nok 1 - one\r\n')).toEqual(['passed 1 one'])
  })
})

describe('the plan', () => {
  test('may come last', () => {
    expect(lines('ok\nok\n1..2\n')).toEqual(['passed 1', 'passed 2'])
  })

  test.each([
    ['ok 1\n', 'failed plan: has no plan (1..N): it may have ended early'],
    ['1..3\nok 1\n', 'failed plan: planned 3 and ran 1'],
    ['1..0\nok 1\n', 'failed plan: planned 0 and ran 1'],
    ['1..1\n1..1\nok 1\n', 'failed plan: has more than one plan'],
    ['1..1\nok 7\n', 'failed plan: numbers what it did not plan'],
    ['1..2\nok 1\nok 1\n', 'failed plan: has two results for 1'],
    ['', 'failed plan: has no plan (1..N): it may have ended early'],
    ['1..2\n', 'failed plan: planned 2 and ran 0'],
  ])('%j is a failure', (text, expected) => {
    expect(lines(text).filter(line => !line.startsWith('passed'))).toEqual([expected])
  })

  test.each([
    ['1..0 # SKIP no network', 'skipped plan: no network'],
    ['1..0', 'skipped plan: nothing to test'],
  ])('%s skips everything', (text, expected) => {
    expect(lines(text)).toEqual([expected])
  })
})

test('who bails out has failed, whatever comes behind', () => {
  expect(lines('1..2\nok 1\nBail out! the disk is gone\nok 2\n')).toEqual([
    'passed 1',
    'failed bail out: the disk is gone',
  ])
  expect(lines('1..1\n    Bail out!\n')).toEqual(['failed bail out: without a reason'])
})

test('too many points are a failure', () => {
  const cases = readTap(`${'ok\n'.repeat(20_001)}1..20001\n`)
  expect(cases).toHaveLength(20_001)
  expect(cases.at(-1)).toEqual({ attribute: 'output', status: 'failed', message: 'has more than 20,000 cases' })
})
