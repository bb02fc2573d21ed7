import { describe, expect, test } from 'vitest'
import type { TestResult } from './report.ts'
import { runChecks } from './run.ts'
import type { Subject } from './subject.ts'
import { checksOf, outcomesOf, treeSubject } from './testing.ts'

const never = new AbortController().signal
const YAML = `matching:
  one: { content: 1, matches: 1 }
  two: { content: [a], matches: { have-len: 2 }, title: there are two }
  three: { content: x, matches: y, skip: true }
`

describe('checks', () => {
  test('are told one by one, in the order they are written', async () => {
    const told: TestResult[] = []
    const onResult = (result: TestResult): void => void told.push(result)
    const results = await runChecks(await checksOf(YAML), await treeSubject({}), { signal: never, onResult })
    expect(results.map(result => ({ ...result, seconds: 0 }))).toEqual([
      {
        id: 'a.yaml: matching one',
        place: 'root',
        kind: 'matching',
        name: 'one',
        attribute: 'matches',
        status: 'passed',
        expected: '1',
        found: '1',
        seconds: 0,
      },
      {
        id: 'a.yaml: matching two',
        place: 'root',
        kind: 'matching',
        name: 'two',
        attribute: 'matches',
        status: 'failed',
        expected: '{"have-len":2}',
        found: '["a"]',
        message: 'there are two',
        seconds: 0,
      },
      {
        id: 'a.yaml: matching three',
        place: 'root',
        kind: 'matching',
        name: 'three',
        attribute: 'matches',
        status: 'skipped',
        seconds: 0,
      },
    ])
    expect(told).toEqual(results)
  })

  test('of another place, and those that are not asked for, are left alone', async () => {
    const subject = await treeSubject({})
    const names = async (yaml: string, only?: (id: string) => boolean): Promise<string[]> => {
      const results = await runChecks(await checksOf(yaml), subject, { signal: never, ...(only && { only }) })
      return results.map(({ name }) => name)
    }
    expect(await names(`where: container\n${YAML}`)).toEqual([])
    expect(await names(YAML, id => id.endsWith(' two'))).toEqual(['two'])
  })

  test('may be of text that is read line by line', async () => {
    const yaml = `matching:
  lines: { as-reader: true, content: "foo bar\\nmoo cow", matches: [foo, "/^m.*w$/", "!x"] }
  text: { content: "foo bar\\nmoo cow", matches: [foo] }
  wrong: { as-reader: true, content: foo, matches: ["!/(/"] }
`
    expect(await outcomesOf(await treeSubject({}), yaml)).toEqual([
      'lines matches: passed',
      String.raw`text matches: failed, "foo bar\nmoo cow"`,
      'wrong matches: failed, "is not a regular expression"',
    ])
  })

  test('that cannot be made fail and say why', async () => {
    const broken: Subject = { place: 'root', run: () => Promise.reject(new Error('the container has ended')) }
    expect(await outcomesOf(broken, 'user: { root: { exists: true, uid: 0 } }')).toEqual([
      'root exists: failed, the container has ended',
      'root uid: failed, the container has ended',
    ])
  })

  test('end when they are told to, with no result of what was cut short', async () => {
    const ended = new AbortController()
    const told: string[] = []
    const run = runChecks(await checksOf(YAML), await treeSubject({}), {
      signal: ended.signal,
      onResult: ({ name }) => {
        told.push(name)
        ended.abort(new Error('enough'))
      },
    })
    await expect(run).rejects.toThrow('enough')
    expect(told).toEqual(['one'])
  })
})
